"""What a plugin offers that rewrites the text of pipeline files: the version of this contract is 1.

A preprocessor is text in, text out. It is run wherever a project is read, on several machines and
more than once, and must make the same of the same: a plan is compared with the one that a state was
made for.
"""

import logging
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from kaflow_engine.plugins.installed import PREPROCESSORS, loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenText:
    """The text of one pipeline file."""

    text: str
    """As it stands in the file, or as the preprocessor before has made it."""
    file: str
    """The path of the file."""
    options: BaseModel
    """The settings of the plugin in the configuration, as its own model has them."""

    @property
    def logger(self) -> logging.Logger:
        """Where it can say what it does."""
        return logging.getLogger("kaflow.preprocessor")


class PreprocessorPlugin(Protocol):
    """Rewrites the text of pipeline files before they are parsed."""

    @property
    def options(self) -> type[BaseModel]:
        """What its settings in the configuration may be, as a pydantic model."""
        ...

    def rewrite(self, given: GivenText) -> str:
        """Return the text that is read in the place of that of a file.

        Raises:
            ModelError: The author's file is wrong; says where.
        """
        ...


def preprocessor_plugin(name: str) -> PreprocessorPlugin:
    """Return the preprocessor that a package offers, imported on first use.

    Raises:
        UnknownName: No package offers it; says which there are.
        ModelError: It cannot be imported, or is no preprocessor.
    """
    return loaded(PREPROCESSORS, name)

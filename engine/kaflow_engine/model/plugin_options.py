"""Names of plugins, and what an author says to one."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from kaflow_engine.model.names import refuse


def is_plugin_name(text: str) -> bool:
    """Tell whether a text is the name of a plugin, with its namespace.

    >>> is_plugin_name("acme.tally"), is_plugin_name("tally")
    (True, False)
    """
    return bool(re.fullmatch(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+", text))


def plugin_name(text: str) -> str:
    """Return the name of a plugin, with its namespace.

    Raises:
        ValueError: It is none.
    """
    if not is_plugin_name(text):
        raise refuse(
            "{value} is not the name of a plugin",
            "write <namespace>.<name> in small letters, such as acme.tally",
        )
    return text


PluginName = Annotated[str, AfterValidator(plugin_name)]


def _one(value: object) -> object:
    if isinstance(value, list | dict):
        raise refuse("must be one value", "write a text, a number, true or false")
    return value


Option = Annotated[str | int | float | bool | None, BeforeValidator(_one)]
"""What an author says to a plugin under one name."""

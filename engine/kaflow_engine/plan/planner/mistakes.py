"""Mistakes of one file, collected so that they are reported at once."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from kaflow_engine.errors import Location, ModelError, Problems
from kaflow_engine.model.files.yaml_file import raise_all

T = TypeVar("T")


@dataclass(kw_only=True)
class Mistakes:
    """Mistakes of one file, collected so that they are reported at once."""

    found: list[ModelError] = field(default_factory=list[ModelError])

    def attempt(self, action: Callable[[], T]) -> T | None:
        """Run an action; a mistake is kept and None returned."""
        try:
            return action()
        except Problems as problems:
            self.found += problems.errors
        except ModelError as error:
            self.found.append(error)
        return None

    def raise_all(self) -> None:
        """Raise what was found, in the order of the file."""
        raise_all(self.found)


@contextmanager
def placed(at: Location) -> Generator[None]:
    """Say where a mistake stands that does not know it."""
    try:
        yield
    except ModelError as error:
        error.at = error.at or at
        raise

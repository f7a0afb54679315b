"""The text of a processor, and where its characters stand in the author's file."""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from kaflow_engine.errors import Location


@dataclass(frozen=True, kw_only=True)
class SourceText:
    """SQL, and where it begins."""

    text: str
    at: Location
    """Of its first line."""
    indent: int | None = 0
    """Characters before each of its lines in the file; None: not known."""

    @cached_property
    def _starts(self) -> list[int]:
        lines = self.text.split("\n")
        return list(accumulate((len(line) + 1 for line in lines), initial=0))

    def line(self, offset: int) -> int:
        """Return the line of the file in which a character stands."""
        return (self.at.line or 1) + bisect_right(self._starts, offset) - 1

    def place(self, offset: int) -> Location:
        """Return line and column of a character."""
        start = self._starts[bisect_right(self._starts, offset) - 1]
        column = 0 if self.indent is None else offset - start + self.indent + 1
        return Location(self.at.file, self.line(offset), column)

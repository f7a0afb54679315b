"""What is known of a function."""

from dataclasses import dataclass
from typing import Literal

Group = Literal[
    "aggregate",
    "array",
    "date",
    "header",
    "json",
    "null",
    "number",
    "obfuscation",
    "project",
    "text",
]
"""`project`: a Python function, which the planner knows better."""

Nulls = Literal["refuses", "passes", "removes", "makes", "allows"]
"""What a function does with NULL: it takes none and gives none; gives it where it is given; takes
it and gives none; takes none and may give it; takes it and may give it."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function, and what stands for it.

    In a template `{0}` is the first argument, `{*}` all of them, `{1:pattern}` a constant text
    with a pattern of Java for times, `{1:name}` one that names a field, `{1:paths}` one that is a
    path in JSON, and `{headers}` the headers of the record.
    """

    group: Group
    template: str
    least: int
    """So many arguments, or more where the template has `{*}`."""
    nulls: Nulls = "refuses"
    with_more: str = ""
    """The template where it has one argument more; empty: it takes no more."""

    @property
    def takes(self) -> str:
        """How many arguments it takes."""
        if "{*}" in self.template:
            return f"{self.least} or more arguments"
        if self.with_more:
            return f"{self.least} or {self.least + 1} arguments"
        return f"{self.least} argument" + ("" if self.least == 1 else "s")

    def fits(self, arguments: int) -> bool:
        """Tell whether it can be called with so many arguments."""
        if "{*}" in self.template:
            return arguments >= self.least
        return arguments == self.least or (bool(self.with_more) and arguments == self.least + 1)

    def template_of(self, arguments: int) -> str:
        """Return the template for so many arguments."""
        return self.with_more if self.with_more and arguments > self.least else self.template

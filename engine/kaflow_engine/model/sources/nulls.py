"""Where NULL may not stand in the queries of a pipeline: found by its front end, judged where the
columns of topics are known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kaflow_engine.errors import Location, SqlError

Strictness = Literal["on", "warn", "off"]
"""`on`: an expression that can be NULL where none may be is a mistake; `warn`: a notice."""

Nullable = Mapping[str, frozenset[str]]
"""Fields that can be NULL, by topic, in lower case; a field of a field is `a.b`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """An expression that is NULL where a field is, and stands where NULL may not."""

    said: str
    """What it is, and what does not take it."""
    at: Location
    hint: str
    topic: str | None = None
    """Whose field makes it NULL; None: it can be NULL whatever the topics hold."""
    fields: tuple[str, ...] = ()
    """That field in lower case, and those around it."""
    why: str = ""
    """What makes it NULL."""

    def mistake(self, nullable: Nullable) -> SqlError | None:
        """Return what is wrong, where it can be NULL.

        Args:
            nullable: What is known of topics.
        """
        if self.topic is not None and nullable.get(self.topic, frozenset()).isdisjoint(self.fields):
            return None
        return SqlError(f"{self.said}: {self.why}", self.at, self.hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class NullChecks:
    """What a front end found, and how strict its author is."""

    strict: Strictness = "off"
    operands: tuple[Operand, ...] = ()

    @property
    def topics(self) -> frozenset[str]:
        """The topics whose schemas decide."""
        return frozenset(each.topic for each in self.operands if each.topic is not None)

    def mistakes(self, nullable: Nullable, *, where: Strictness) -> tuple[SqlError, ...]:
        """Return what is wrong, where that is how strict its author is.

        Args:
            nullable: What is known of topics.
            where: Whether mistakes are asked for, or notices.
        """
        if self.strict != where:
            return ()
        found: dict[Location, SqlError] = {}
        for each in self.operands:
            mistake = each.mistake(nullable)
            if mistake is not None:
                found.setdefault(each.at, mistake)
        return tuple(found.values())

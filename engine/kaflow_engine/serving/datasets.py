"""What can be asked for: data sets, their statements and parameters."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.model.sqlflow.lowering.said import SqlText
from kaflow_engine.serving.reads import Read

MOST_ROWS, TIMEOUT_S = 10_000, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A SELECT over attached databases."""

    dataset: str
    grain: str
    """Empty in a data set without grains."""
    sql: SqlText
    """As its author wrote it."""
    bound: str
    """With types around its parameters without a semicolon."""
    reads: tuple[Read, ...]
    max_range: int | None = None
    """Longest time that it is asked for, in milliseconds; None: a data set without a range."""
    bucket: int | None = None
    """What times are rounded up to, in milliseconds, where answers are kept."""

    @property
    def where(self) -> str:
        """How it is called in answers and logs."""
        return f"data set {self.dataset}" + (f", grain {self.grain}" if self.grain else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The parameters between which times lie."""

    since: str
    until: str
    default: int
    """Milliseconds before `until` where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Something that can be asked for by its name."""

    name: str
    description: str
    params: Mapping[str, str]
    """Name → string, integer or timestamp."""
    statements: Mapping[str, Statement]
    """By grain, those of a range from the finest on; the only one under the empty name."""
    span: Span | None
    most_rows: int
    timeout_s: float
    ttl_s: int | None
    """How long answers are kept; None: they are not."""

    @property
    def grains(self) -> tuple[str, ...]:
        """Their names; none where there are no grains."""
        return tuple(name for name in self.statements if name)

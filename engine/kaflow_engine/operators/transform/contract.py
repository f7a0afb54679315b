"""What a kind of transform must offer, as Protocols; nothing that one of them needs is imported."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kaflow_engine.flow.transforms import Transform
from kaflow_engine.measures import Measures
from kaflow_engine.plugins.state import Learned, States
from kaflow_engine.state.answers import Answers

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for mistakes only, and it takes long to load


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A row of which a transform makes nothing, because it fails: its record is a dead letter."""

    row: int
    """Its place among the rows that the transform was given."""
    error: str
    """What kind of error it is, such as `ScriptError`."""
    message: str
    phase: str = "transform"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformed:
    """What a transform makes of rows."""

    rows: "pa.Table"
    """The columns `Transform.results`, in their order and with types that DuckDB casts to those."""
    origin: "pa.Array"
    """Of each row the place of the one that it is made of, ascending: several have the same place
    where one became several, and none has that of a row that became none or failed."""
    failures: tuple[Failure, ...] = ()


def _none(kind: str, name: str) -> Mapping[str, str]:
    raise KeyError((kind, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformBatch:
    """What a transform knows of the task that calls it, and what is the same when that runs
    again.

    A task may call a transform several times, with other rows each time, or without those of
    records that have failed elsewhere.
    """

    batch: int
    batch_time: int
    """Epoch milliseconds."""
    mark: str
    """`batch_mark` of the batch; empty where nothing is logged."""
    identities: Callable[[], "pa.Table"]
    """Gives, for each row, what tells it from all others of the pipeline: TRIGGER, ORIGIN, `ts`,
    and `members` where several rows are of one record."""
    answers: Answers
    """What outside systems answered in an earlier try of the batch."""
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Those of the configuration, by name."""
    connection: Callable[[str, str], Mapping[str, str]] = field(default=_none, repr=False)
    """Gives, by kind and name, how a database is reached, of the configuration."""
    states: States = field(default_factory=dict[str, Mapping[str, Any]], repr=False)
    """Of plugins, as the batch before left them."""
    learned: Learned = field(default_factory=Learned, repr=False)
    """Takes what rows add to these."""
    measures: Measures = field(default_factory=Measures, repr=False)


class RowTransform(Protocol):
    """A transform as one task uses it, for one hand-over of rows."""

    def __call__(self, rows: "pa.Table", batch: TransformBatch) -> Transformed:
        """Transform rows, which have the columns `Transform.columns`.

        The same rows must become the same rows, whenever and wherever that happens, and however
        they are cut into calls.

        Raises:
            KaflowError: It cannot transform any row; the batch fails, and is run again.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """What is wrong with what an author says of a transform."""

    key: str
    """The key of the relation under which it stands."""
    message: str
    hint: str | None = None
    line: int = 1
    """Of the text under that key, from 1."""


class TransformKind(Protocol):
    """A kind of transform that a file names."""

    def mistakes(self, params: Any) -> Iterator[Mistake]:
        """Yield what is wrong with what its author says, as far as it shows before it runs.

        Raises:
            ModelError: A package is missing that the kind needs.
        """
        ...

    def open(self, transform: Transform) -> RowTransform:
        """Return what transforms rows, from the beginning: it remembers no rows of another one."""
        ...

"""What sinks must offer, as Protocols; nothing of an outside system is imported.

A sink has two ends: in a task, a `TaskSink` writes the rows of one task of one batch; on the
driver, a `Sink` commits a batch, and says what it holds. Its `Capabilities` say what it promises:
no one compares names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.replaced import Replaced
from kaflow_engine.measures import Measured, Measures
from kaflow_engine.model.columns import Column
from kaflow_engine.plugins.finalizing import Finalizing
from kaflow_engine.plugins.metrics import PluginMetrics
from kaflow_engine.state.answers import NO_ANSWERS, Answers

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for capabilities only, and it takes long to load

    from kaflow_engine.state.storage.store import Store

Delivery = Literal["exactly_once", "at_least_once"]

Settings = Mapping[str, str | int | bool | None]
"""What an author says of an output, as far as it is no secret."""

CrashPoint = Callable[[str], None]
"""Takes the name of a step of the protocol, at which a test may end the process."""


def survive(point: str) -> None:
    """Do nothing at a crash point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a sink can do and promises, for the delivery that the author asks for."""

    accepts: frozenset[Literal["append", "upsert"]]
    """`append`: each row is one more; `upsert`: a row replaces the one of its key."""
    commit: Literal["task", "driver"]
    """Who makes rows visible: each task its own, or the driver those of the whole batch."""
    guarantee: Delivery
    reason: str
    """Why, and for whom the guarantee holds."""
    ordered: bool
    """Whether the order of the rows of one key matters: readers meet them so, or the last stays.
    Elsewhere rows need not meet at one writer."""
    backfills: bool = True
    """Whether a backfill may write there, beside the stream."""
    listed_keys: bool = False
    """Whether the key of a row may be several of its columns."""
    finalizes: bool = False
    """Whether its sinks hear of batches that are committed: each is a `FinalizingSink`."""
    measures: bool = False
    """Whether its sinks measure on the driver: each is a `MeasuringSink`."""
    readable: bool = False
    """Whether rows can be read back, for checks: what opens its outputs is a `ReadableOutlet`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPart:
    """The rows that one task of one batch has for a sink."""

    rows: "pa.Table"
    """Schema OUTPUT for a sink that takes records, else typed columns."""
    batch: int
    epoch: int
    """Of the run."""
    mark: str = ""
    """`batch_mark` of the batch."""
    alone: bool = False
    """Whether these are all rows of the batch."""
    passing: CrashPoint = survive
    answers: Answers = NO_ANSWERS
    """What the outside said to an earlier try of the batch."""
    state: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Of a plugin: what was learned up to the batch before, by key."""
    metrics: PluginMetrics = field(default_factory=lambda: PluginMetrics("", Measures()))
    """Of a plugin: records what it measures."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that a sink cannot take, and never will: it becomes a dead letter."""

    row: int
    """Its place among those of the task."""
    error: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a task did with its part."""

    rows: Mapping[str, int]
    """Topic or table to the rows that it wrote there, dead letters aside."""
    notes: tuple[Mapping[str, Any], ...] = ()
    """What the driver must know to commit the batch: plain data for JSON."""
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    """Milliseconds by phase."""
    refused: tuple[Refused, ...] = ()
    """The same ones when the batch runs again."""
    learned: Sequence[tuple[str, Any]] = ()
    """Of a plugin: keys, and what is to be merged into their values (`merge` of its kind); the same
    when the batch runs again, also where its rows are there already."""


class TaskSink(Protocol):
    """A sink as tasks see it; picklable."""

    def write(self, part: TaskPart) -> Written:
        """Write the rows of a task; the same part again leaves what it left before.

        Raises:
            SinkError: They cannot be written.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedBatch:
    """A batch whose tasks are all done."""

    number: int
    mark: str
    """`batch_mark`."""
    notes: Sequence[Mapping[str, Any]]
    """Of all its tasks, those for other sinks among them."""
    same_rows: bool = True
    """Whether a batch that runs again must have the rows it had; not where records were lost."""


class Sink(Protocol):
    """One output of a run as its driver sees it."""

    @property
    def capabilities(self) -> Capabilities:
        """What it promises."""
        ...

    def commit(self, batch: FinishedBatch) -> None:
        """Commit a batch; where tasks commit, check that they have delivered the batch there is.

        A batch that it holds already is not added again.

        Raises:
            StateError: It holds another batch of that number, or other rows of it.
            SinkError: The batch cannot be committed.
        """
        ...

    def delivered(self, batch: int) -> bool:
        """Tell whether it holds something of a batch, or of a later one."""
        ...

    def finish(self) -> None:
        """Make visible, at the end of a run that has one, what `commit` only noted.

        Raises:
            StateError: What was noted is gone.
            SinkError: It cannot be committed.
        """
        ...


class FinalizingSink(Sink, Finalizing, Protocol):
    """One output that hears, too, of batches that are committed by all."""


class MeasuringSink(Sink, Protocol):
    """One output that measures, too, on the driver."""

    def measured(self) -> Measured:
        """Return what was measured since this was asked last."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose batches a sink counts."""

    state: str
    generation: int
    epoch: int = 0
    """Of the run that opens it; 0: no run has begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output whose rows are typed columns, as its sink is given it."""

    name: str
    place: str
    """Where it is: a folder, a URL."""
    partition: str = ""
    """The column by which rows are parted, if any."""
    columns: tuple[Column, ...] = ()
    """Of its rows, where a file names its kind; those of `flow.records` stand beside them."""
    key: str | None = None
    """The column that is the key; where there is none of that name, `flow.records.KEY` has it."""
    key_columns: tuple[str, ...] = ()
    """Columns that are the key together; `flow.records.KEY` has the object of their texts."""
    changes: bool = False
    """A row replaces the one of its key, and rows are deleted."""
    settings: Settings = field(default_factory=dict[str, str | int | bool | None])
    """What the author says."""
    delivery: Delivery = "exactly_once"
    """What the author asks for."""
    connection: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What the configuration says of the connection; secrets among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A run with an end, whose rows take the place of others when it is done."""

    replaced: Replaced
    store: "Store"
    """Where what batches wrote is noted until then."""
    require_newest: Callable[[], None]
    """Raises where another run has begun."""
    passing: CrashPoint = survive


class Outlet(Protocol):
    """Opens outputs of one kind."""

    def task(self, output: Output, owner: Owner) -> TaskSink:
        """Return what tasks of a state write with."""
        ...

    def look(self, output: Output, columns: "pa.Schema", owner: Owner) -> Sequence[Holding]:
        """Return what an output holds, from whatever state; nothing is changed by looking.

        Raises:
            SinkError: It could not be written, or cannot be read.
        """
        ...

    def hand_over(self, output: Output, columns: "pa.Schema", owner: Owner) -> None:
        """Make an output that of an owner who replaces another one.

        Raises:
            SinkError: It cannot be written.
        """
        ...

    def open(
        self, output: Output, columns: "pa.Schema", owner: Owner, bounded: Bounded | None
    ) -> Sink:
        """Open an output for a run, and create what it lacks.

        Raises:
            SinkError: It cannot be written.
            StateError: A bounded run cannot replace what it has.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfit:
    """A column that a kind of sink does not take."""

    why: str
    hint: str | None = None


class SinkKind(Protocol):
    """One kind of sink; light to load, for planning asks it."""

    @property
    def outlet(self) -> Outlet | None:
        """What opens its outputs; None: its rows are records, written as dead letters are."""
        ...

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what an output of these settings promises where the author asks for a delivery."""
        ...

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return what it has no type or name for; of kinds that files name by `type` only."""
        ...

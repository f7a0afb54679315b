"""What sources and sinks must offer, as Protocols; nothing of an outside system is imported.

A `Source` gives records by ranges of offsets, and the same range gives the same records.

A sink has two ends. In a task, a `TaskSink` writes the rows of one task of one batch. On the
driver, a `Sink` commits a batch, and says what it holds. What it promises stands in its
`Capabilities`, so that planner, runtime and `kaflow explain` ask and never compare names.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kaflow_engine.connectors.holding import Holding

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for capabilities only, and it takes long to load

    from kaflow_engine.state.storage.store import Store

Outage = Literal["retry", "stop", "bad settings"]
"""What an error of an outside system calls for: `retry`: it is away, and may come back; `stop`:
trying again gives the same; `bad settings`: someone must correct the configuration."""

StartPolicy = Literal["earliest", "latest"] | int
"""Where reading begins: at the first record there is, behind the last, or at the first one that is
not older than a time in epoch milliseconds."""

Delivery = Literal["exactly_once", "at_least_once"]

CrashPoint = Callable[[str], None]
"""Takes the name of a step of the protocol, at which a test may end the process."""


def survive(point: str) -> None:
    """Do nothing at a crash point."""


class Source(Protocol):
    """Records in partitions, each in the order of its offsets."""

    @property
    def bounded(self) -> bool:
        """Whether it ends for good: nothing comes behind `latest`."""
        ...

    def partitions(self) -> Sequence[int]:
        """Return the partitions there are.

        Raises:
            SourceError: It does not exist, or does not answer.
        """
        ...

    def latest(self) -> Mapping[int, int]:
        """Return the end of each partition: the offset of the next record to come."""
        ...

    def start(self, policy: StartPolicy) -> Mapping[int, int]:
        """Return from where each partition is read; its end where it has no such record."""
        ...

    def read(self, start: Mapping[int, int], end: Mapping[int, int]) -> "pa.Table":
        """Return the records (schema RECORDS) with start <= offset < end of each partition.

        Raises:
            SourceError: They cannot be read.
        """
        ...

    def outage(self, error: BaseException) -> Outage | None:
        """Tell what an error calls for; None: it is no error of this source."""
        ...


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
    """Whether readers meet the rows of one key in the order in which they were made."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a task did with its part."""

    rows: Mapping[str, int]
    """Topic or table to the rows that it wrote there, dead letters aside."""
    notes: tuple[Mapping[str, Any], ...] = ()
    """What the driver must know to commit the batch: plain data for JSON."""
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    """Milliseconds by phase."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose batches a sink counts."""

    state: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output whose rows are typed columns, as its sink is given it."""

    name: str
    place: str
    """Where it is: a folder, a URL."""
    partition: str
    """The column by which rows are parted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedRecords:
    """The rows in whose place a backfill puts its own: those made of records that it has read."""

    partitions: frozenset[str]
    """Of the output; rows of others stay."""
    source: tuple[str, str]
    """Columns: partition and offset of the record that a row was made of."""
    read: Mapping[int, tuple[int, int]]
    """By source partition the first offset that was read, and the one after the last."""
    unknown: bool
    """Whether rows that name no record go, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedGroups:
    """The rows in whose place a backfill puts its own: those of all windows of its partitions."""

    partitions: frozenset[str]
    """Of the output; rows of others stay."""
    group: str
    """Column: the group and the window that a row is of."""
    unknown: bool
    """Whether rows that name no group go, too."""


Replaced = ReplacedRecords | ReplacedGroups


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

    def task(self, output: Output) -> TaskSink:
        """Return what tasks write with."""
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


class SinkKind(Protocol):
    """One kind of sink; light to load, for planning asks it."""

    @property
    def outlet(self) -> Outlet | None:
        """What opens its outputs; None: its rows are records, written as dead letters are."""
        ...

    def capabilities(self, delivery: Delivery) -> Capabilities:
        """Return what it promises where the author asks for a delivery."""
        ...

    def outage(self, error: BaseException) -> Outage | None:
        """Tell what an error calls for; None: it is no error of this kind of sink."""
        ...

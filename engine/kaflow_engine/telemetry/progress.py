"""The progress of a running pipeline, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kaflow_engine.measures import Measurements

RunState = Literal[
    "standby",
    "starting",
    "restoring",
    "recovering",
    "reading history",
    "loading dimensions",
    "running",
    "degraded",
    "failed",
    "stopped",
]

WAITING = "waiting"
DEAD_LETTERS = ("dead_letter", "side_dead_letters")


USED = "used"
"""The class of records that a table has taken."""

CLASSES = ("emitted", "dead_letter", "waiting", "filtered", "expired", "skipped", USED)
"""What becomes of a driving record; the counts add up to `read`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpan:
    """One stage of a batch, over all its tasks; times in epoch milliseconds."""

    name: str
    """`map`, `join <topics>`, or `deliver`."""
    start: int
    end: int
    rows: int
    """That came in."""
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideOutputCount:
    """What a side output was shown by this process; a batch that runs again counts again."""

    output: str
    plugin: str
    rows: int = 0
    missed: int = 0
    """Rows on which it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One pipeline at one moment."""

    pipeline: str
    state: RunState = "starting"
    batch: int = 0
    """The last batch that was committed."""
    run: int = 0
    """The epoch of the run that did."""
    batch_records: int = 0
    """Records of that batch."""
    batch_ms: float = 0.0
    records: int = 0
    """Records since this process started."""
    records_per_second: float = 0.0
    """Over the last seconds."""
    lag: Mapping[str, int] = field(default_factory=dict[str, int])
    """Topic to offsets that were there at the last batch and are not read yet."""
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict[str, dict[int, int]])
    """Topic to partition to the first offset that the last batch left unread."""
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    """Since the state was created; what became of driving records adds up to `read`."""
    watermark: int | None = None
    """Epoch milliseconds; of several chains that of the one behind the others."""
    settled: Mapping[str, int] = field(default_factory=dict[str, int])
    """Table to the event time in epoch milliseconds up to which it has all rows but those of late
    records; absent before the first event of each topic they are made of."""
    batch_time: int | None = None
    """Epoch milliseconds."""
    clock_ahead: int = 0
    """Milliseconds by which the machine's clock jumped ahead of batch time, and is not believed."""
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    """Milliseconds of the last batch by phase."""
    newest: Mapping[str, int] = field(default_factory=dict[str, int])
    """Topic to the greatest event time that this process has read, epoch milliseconds; other event
    times of readings under `<topic>@<column>`."""
    holder: tuple[str, int] | None = None
    """Topic and partition that hold the watermark where it is; under the event time of a reading
    `<topic>@<column>`."""
    holder_at: int | None = None
    """The greatest event time of that partition; None: it has no record yet."""
    holder_newest: int | None = None
    """The greatest event time read of the topics of that watermark; None: nothing was read."""
    waited: int | None = None
    """Milliseconds of event time that the oldest row has waited, or a little more; None: there was
    none, or no watermark."""
    lookups: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Joined topic to rows that left its join, and those with a match; of this process."""
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Operator to entries and bytes of its state, of the partitions that were used so far."""
    busy: float = 0.0
    """Share of the last seconds in which a batch ran."""
    steps: Mapping[str, float] = field(default_factory=dict[str, float])
    """Milliseconds of tasks by step (see `telemetry.steps`), of the batches of those seconds."""
    spent: Mapping[str, float] = field(default_factory=dict[str, float])
    """Milliseconds of tasks by step, since this process started."""
    batches: int = 0
    """Of this process."""
    paused: float = 0.0
    """Seconds in which no batch ran, since the first one of this process."""
    empty_batches: int = 0
    """Batches without a record, of this process."""
    empty_streak: int = 0
    """Those of them behind the last batch that had one."""
    stages: tuple[StageSpan, ...] = ()
    """Of the last batch."""
    links: tuple[str, ...] = ()
    """Headers `traceparent` of its driving records, where traces are sent."""
    batch_end: int | None = None
    """When it was committed, epoch milliseconds."""
    skew: float | None = None
    """Share of the slowest task in the longest stage of the last batch."""
    written: Mapping[str, int] = field(default_factory=dict[str, int])
    """Topic or table to the rows that this process has delivered there."""
    letters: int = 0
    """Dead letters that it has delivered."""
    side_outputs: tuple[SideOutputCount, ...] = ()
    measured: Measurements = ()
    """What tasks of its batches have measured, in this process."""
    received: Measurements = ()
    """What its receivers have measured."""
    checkpoint: "CheckpointMark | None" = None
    """None: there is none yet, or none are wanted."""
    waits_for: str | None = None
    """What keeps a process on standby: who holds which state."""
    failures: int = 0
    """Failures in a row."""
    last_error: str | None = None

    @property
    def delivered(self) -> int:
        """Rows that this process has delivered."""
        return sum(self.written.values())

    @property
    def waiting(self) -> int:
        """Driving records that wait for a match."""
        return self.counters.get(WAITING, 0)

    @property
    def dead_letters(self) -> int:
        """Dead letters since the state was created."""
        return sum(self.counters.get(name, 0) for name in DEAD_LETTERS)


@dataclass(frozen=True, slots=True)
class CheckpointMark:
    """The newest checkpoint in the bucket."""

    batch: int = 0
    created_ms: int = 0
    """Epoch milliseconds; 0: there is none yet."""
    bytes: int = 0
    failures: int = 0
    """Checkpoints that this process could not write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSummary:
    """How the run of one pipeline ended."""

    pipeline: str
    ending: str
    """`caught up`, `drained` or `limit`."""
    batches: int
    """Batches of this run."""
    records: int
    """Records of this run."""
    seconds: float
    counters: Mapping[str, int]
    """Since the state was created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """How a run ended, for each of its pipelines."""

    pipelines: Mapping[str, PipelineSummary]

"""What a running pipeline tells about itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

RunState = Literal[
    "starting",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One pipeline at one moment."""

    pipeline: str
    state: RunState = "starting"
    batch: int = 0
    """The last batch that was committed."""
    batch_records: int = 0
    """Records of that batch."""
    batch_ms: float = 0.0
    records: int = 0
    """Records since this process started."""
    records_per_second: float = 0.0
    """Over the last seconds."""
    lag: Mapping[str, int] = field(default_factory=dict[str, int])
    """Topic to offsets that were there at the last batch and are not read yet."""
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    """Since the state was created; what became of driving records adds up to `read`."""
    watermark: int | None = None
    """Epoch milliseconds."""
    batch_time: int | None = None
    """Epoch milliseconds."""
    phases: Mapping[str, float] = field(default_factory=dict[str, float])
    """Milliseconds of the last batch by phase."""
    failures: int = 0
    """Failures in a row."""
    last_error: str | None = None

    @property
    def waiting(self) -> int:
        """Driving records that wait for a match."""
        return self.counters.get(WAITING, 0)

    @property
    def dead_letters(self) -> int:
        """Dead letters since the state was created."""
        return sum(self.counters.get(name, 0) for name in DEAD_LETTERS)


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

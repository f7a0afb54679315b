"""What to run, and how it went."""

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST = 150
"""Records of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run of one pipeline."""

    name: str
    inputs: str
    broker: str
    path: str
    crash_at: str = ""
    snapshots: str = "1h"
    staged: bool = False
    """Whether batches run stage by stage instead of in one task."""
    delivery: str = "exactly_once"
    on_data_loss: str = "fail"
    jumps_after: int | None = None
    """After how many readings the clock is a month ahead."""
    brokers_ahead: int = 0
    """By how many milliseconds the clock of the brokers is ahead of this one."""
    max_clock_skew: str = "5m"
    pipeline: str = "crash"
    """`crash`; `copy`: the same topics without a join; `relations`: with windows and tables;
    `meetings`: windows that look up, and meet events; `sinks`: two outputs of the kind `sink`."""
    sink: str = ""
    connection: Mapping[str, str] = field(default_factory=dict)
    """What the configuration says of the system behind `sink`."""
    file: str = ""
    """Path of a pipeline file to run in place of these."""
    transaction_timeout: str = "60s"
    most: int = MOST
    """Records of a batch."""
    bucket: str = ""
    """Endpoint of a store with a bucket called `kaflow`, for checkpoints."""
    writes: int | None = None
    """How many writes to the bucket a run survives."""
    piece: int | None = None
    """Bytes of a transaction; None: as many as there is time for."""
    full_after: int | None = None
    """How many files the state directory takes before its disk is full."""
    warehouse: str = ""
    """Where the pipeline has a table instead of an output topic."""
    several: int = 0
    """So many outputs: topics and tables."""
    on_error: str | None = None
    """None: bad records are skipped where there is a table, for dead letters are transactions."""
    changed: bool = False
    """Whether its file was changed so that the state does not fit."""
    wanted: tuple[int, int] | None = None
    """The range of a backfill; None: the stream runs."""
    force: bool = False
    """Whether it fills what no stream has left."""
    patience: str = "2s"
    """How long an outage may last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How it went."""

    how: str
    """ended, killed or stopped."""
    pid: int
    said: str = ""
    """The error, if there was one."""
    exit_code: int = 0

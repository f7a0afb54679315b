"""The outside world of one task of one batch, as the operators see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from kaflow_engine.state.reader import StateReader


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchContext:
    """What is the same for every task of a batch, and for every replay of it."""

    batch: int
    batch_time: int
    """Epoch milliseconds."""
    watermark: int | None
    """Epoch milliseconds; None before the first record."""
    epoch: int
    due: bool = True
    """Something may have fallen due; False spares the look into the time index."""
    mark: str = ""
    """`batch_mark` of the batch; empty where nothing is logged."""

    @property
    def horizon(self) -> int:
        """The watermark, or a time before all others."""
        return -(1 << 62) if self.watermark is None else self.watermark


class Task(Protocol):
    """State, change log and sink of one task."""

    @property
    def partitions(self) -> Sequence[int]:
        """The state partitions that this task owns."""
        ...

    def state(self, step: int, partition: int) -> StateReader:
        """Return the state as it was after the batch before."""
        ...

    def write_changes(self, step: int, partition: int, changes: pa.Table) -> None:
        """Keep puts and deletes (key, value; null deletes) until the batch is committed."""
        ...

    def deliver(self, rows: pa.Table) -> None:
        """Write rows of schema OUTPUT; called at most once."""
        ...

    def avro_schema(self, schema_id: int) -> str:
        """Return the writer schema registered under an id."""
        ...

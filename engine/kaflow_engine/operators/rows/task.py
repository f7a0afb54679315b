"""The outside world of one task of one batch, as the operators see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from kaflow_engine.flow.flow import Beginning
from kaflow_engine.measures import Measures
from kaflow_engine.plugins.state import Learned, States
from kaflow_engine.state.answers import Answers
from kaflow_engine.state.reader import StateReader

NEVER_YET = -(1 << 62)
"""A time before all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchContext:
    """What is the same for every task of a batch, and for every replay of it."""

    batch: int
    batch_time: int
    """Epoch milliseconds."""
    watermarks: Mapping[int, int]
    """Epoch milliseconds by chain; absent before its first record."""
    epoch: int
    due: frozenset[int] | None = None
    """The chains, or BATCH_TIME, in which something may have fallen due, None: any; others are
    spared the look into the time index."""
    mark: str = ""
    """`batch_mark` of the batch; empty where nothing is logged."""
    begins: frozenset[Beginning] = frozenset()
    """What begins in this batch with the rows that tables have."""
    states: States = field(default_factory=dict[str, Mapping[str, Any]])
    """Of plugins, as the batch before left them."""
    more: bool = False
    """Whether topics had more records than the batch, so that another follows at once."""

    def horizon(self, chain: int) -> int:
        """Return the watermark of a chain, or a time before all others."""
        return self.watermarks.get(chain, NEVER_YET)

    def may_be_due(self, chain: int) -> bool:
        """Tell whether something of a chain may have fallen due."""
        return self.due is None or chain in self.due


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

    def connection(self, kind: str, name: str) -> Mapping[str, str]:
        """Return how a database is reached, of the configuration.

        Args:
            kind: What it is, such as `postgres`.
            name: Of the connection.
        """
        ...

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return those of the configuration, by name."""
        ...

    @property
    def answers(self) -> Answers:
        """Return what outside systems answered in an earlier try of the batch."""
        ...

    @property
    def learned(self) -> Learned:
        """Take what rows add to states of plugins."""
        ...

    @property
    def measures(self) -> Measures:
        """Take what is measured."""
        ...

    def avro_schema(self, schema_id: int, cluster: str = "") -> str:
        """Return the writer schema registered under an id, with the registry of a cluster."""
        ...

"""Sources in phases, as a plan keeps them."""

from dataclasses import dataclass, replace
from typing import Literal

from kaflow_engine.flow.origins.databases import DatabaseParams
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.model.columns import Column

PhaseParams = DatabaseParams | FilesParams
"""The settings of a phase of a source that has several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandoverParams:
    """From where a topic is read that follows phases; one of these is not None."""

    columns: tuple[str, str] | None
    """Partition and offset in the table of the last phase."""
    offsets: tuple[tuple[int, int], ...] | None
    """Partitions and offsets."""
    time: int | None
    """Epoch milliseconds."""
    query: str | None = None
    """Gives partitions and first offsets, in the database of the last phase."""
    start_at: Literal["earliest", "latest"] | None = None
    """Wherever the topic begins, or ends when the state begins; rows may be in both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridParams:
    """Phases that end, and then a topic."""

    type: Literal["hybrid"] = "hybrid"
    phases: tuple[PhaseParams, ...]
    topic: str | None
    """None: it ends with the last phase."""
    handover: HandoverParams | None
    cluster: str = ""
    """Where the topic is; empty: where topics are that name none."""
    avro: tuple[Column, ...] = ()
    """What is read of the topic's records, which are Avro; none: they are JSON."""

    def with_columns(self, columns: tuple[Column, ...]) -> "HybridParams":
        """Return the same with columns that the schema of its topic has, which is Avro's."""
        phases = (p if isinstance(p, FilesParams) else _read(p, columns) for p in self.phases)
        return replace(self, phases=tuple(phases), avro=columns)


def _read(params: DatabaseParams, columns: tuple[Column, ...]) -> DatabaseParams:
    return replace(params, columns=columns)

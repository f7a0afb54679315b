"""What a run learns from the pipeline's own topic when it begins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.kafka_control_records import ControlView


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """What a run knows once its predecessors can no longer write, or before it asks them to end."""

    epoch: int
    epoch_offset: int
    """Where the epoch stands in the topic; a newer epoch can only stand behind it."""
    delivered: Mapping[tuple[str, int], int]
    """`(sink, delivery partition)` → the last batch that was delivered."""
    rows: Mapping[tuple[str, int], int]
    """`(sink, delivery partition)` → rows and dead letters of that partition in that batch."""
    batches: Mapping[int, Mapping[str, Any]]
    """Batch records kept here for this state and generation, by batch."""
    holdings: frozenset[Holding]
    """What was delivered, from whatever state."""

    def delivered_to(self, sink: str) -> dict[int, tuple[int, int]]:
        """Return delivery partition → last delivered batch of one sink, and its rows."""
        return {
            p: (batch, self.rows[name, p])
            for (name, p), batch in self.delivered.items()
            if name == sink
        }


def run_start(
    view: ControlView, state_id: str, generation: int, epoch: int, epoch_offset: int
) -> RunStart:
    """Return what the markers and batch records of a state add up to."""
    mine = {
        (sink, p): marker
        for (state, of, sink, p), marker in view.markers.items()
        if (state, of) == (state_id, generation)
    }
    return RunStart(
        epoch=epoch,
        epoch_offset=epoch_offset,
        delivered={place: m.batch for place, m in mine.items() if m.batch is not None},
        rows={place: m.rows for place, m in mine.items()},
        batches={
            batch: record
            for (state, of, batch), record in view.batches.items()
            if (state, of) == (state_id, generation)
        },
        holdings=frozenset(
            Holding(state=m.state, generation=m.generation, batch=m.batch, mark=m.mark)
            for m in view.markers.values()
            if m.batch is not None
        ),
    )

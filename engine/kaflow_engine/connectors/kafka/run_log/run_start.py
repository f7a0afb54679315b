"""What a run learns from the pipeline's own topic when it begins."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.kafka.run_log.control_records import ControlView


class Delivered(NamedTuple):
    """What was delivered of a delivery partition."""

    batch: int
    """The last batch of which it was given rows."""
    rows: int
    """Rows and dead letters of that batch."""
    digest: str = ""
    """Checksum of these rows where the batch has more of them; empty: it has no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """What a run knows once its predecessors can no longer write, or before it asks them to end."""

    epoch: int
    epoch_offset: int
    """Where the epoch stands in the topic; a newer epoch can only stand behind it."""
    delivered: Mapping[tuple[str, int], int]
    """`(sink, delivery partition)` → the last batch that was delivered, maybe in part."""
    rows: Mapping[tuple[str, int], int]
    """`(sink, delivery partition)` → rows and dead letters of that partition in that batch."""
    digests: Mapping[tuple[str, int], str]
    """`(sink, delivery partition)` → checksum of these rows, where the batch has more of them."""
    batches: Mapping[int, Mapping[str, Any]]
    """Batch records kept here for this state and generation, by batch."""
    holdings: frozenset[Holding]
    """What was delivered, from whatever state."""

    def delivered_to(self, sink: str) -> dict[int, Delivered]:
        """Return what was delivered to one sink, by delivery partition."""
        return {
            p: Delivered(batch, self.rows[name, p], self.digests.get((name, p), ""))
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
        digests={place: m.digest for place, m in mine.items() if m.digest},
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

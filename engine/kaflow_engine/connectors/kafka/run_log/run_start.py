"""What a run learns from the pipeline's own topic when it begins."""

from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.kafka.run_log.control_records import ControlView
from kaflow_engine.connectors.run_log import RunStart


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

"""What comes before a stream is live: batches that were left, and what is read first."""

from collections.abc import Iterator

from kaflow_engine.connectors.kafka_admin import require
from kaflow_engine.connectors.kafka_client import KafkaSettings
from kaflow_engine.operators.params import Plan
from kaflow_engine.runtime.history import Histories, ends_of_histories
from kaflow_engine.runtime.history_files import check_unchanged
from kaflow_engine.runtime.losses import settle_losses
from kaflow_engine.runtime.offsets import only
from kaflow_engine.runtime.plans import made_lenient, plan_of
from kaflow_engine.runtime.run import Run
from kaflow_engine.runtime.start.recut import recut
from kaflow_engine.state.log import BatchLog, Offsets, StateRecord
from kaflow_engine.telemetry.progress import RunState


def recover(run: Run, log: BatchLog, kafka: KafkaSettings) -> None:
    """Run the batches again that earlier runs left."""
    check_unchanged(run.spark, run.histories, run.standing.offsets)
    if not run.left:
        return
    counts = require(kafka, [topic.name for topic in run.plan.topics])
    *settled, last = run.left
    for record in (*settled, recut(run, log, last)):
        run.watch.say(state="recovering")
        run.standing, rest = settle_losses(
            kafka, run.plan, run.standing, counts, run.watch, run.histories, record
        )
        if log.open_batch() is None:
            log.begin(record)
        if rest is not None and run.runner.kept is not None:
            run.runner.kept.excuse(record.number)
        begun = plan_of(log.load_plan(record.plan))
        run.replay(record, made_lenient(begun, run.plan), rest)


def read_first(
    plan: Plan, state: StateRecord, histories: Histories
) -> Iterator[tuple[RunState, Offsets]]:
    """Yield what is read first, and up to where; dimensions before events, files before topics."""
    history = ends_of_histories(histories)
    yield "reading history", only(history, frozenset(state.dimension_ends))
    yield "loading dimensions", state.dimension_ends
    if plan.backfill is None:  # else all topics are read side by side
        yield "reading history", history

"""Recovery: open batches and initial loads before a stream is live."""

import logging
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kaflow_engine.flow.chains.chain import number_of_state
from kaflow_engine.flow.flow import Flow
from kaflow_engine.runtime.batch.beginnings import beginnings
from kaflow_engine.runtime.batch.data_loss import settle_losses
from kaflow_engine.runtime.batch.position import as_the_state_reads
from kaflow_engine.runtime.batch.run import Run
from kaflow_engine.runtime.batch.stop import Ending
from kaflow_engine.runtime.clock.batch_clock import warn_of_future
from kaflow_engine.runtime.planning.plan_codec import made_lenient, plan_of
from kaflow_engine.runtime.sink.outputs import dropped_outputs
from kaflow_engine.runtime.source.history import ends_of_histories
from kaflow_engine.runtime.source.history_files import check_unchanged
from kaflow_engine.runtime.source.offsets import at_most, only, reaches, unread
from kaflow_engine.runtime.takeover.recut import recut
from kaflow_engine.runtime.takeover.restore import RESTORED
from kaflow_engine.state.copies.rocks_open import wipe
from kaflow_engine.state.log.batch_log import BatchLog, Offsets, StateRecord
from kaflow_engine.state.storage.copy_location import COPIES
from kaflow_engine.telemetry.progress import RunState

LOGGER = logging.getLogger("kaflow.runtime")


def recover(run: Run, log: BatchLog, directory: Path) -> None:
    """Run the batches again that earlier runs left, each with all outputs that it was begun for.

    Args:
        run: Nothing was read yet.
        log: The batch log.
        directory: Of the state.
    """
    run.say_committed()  # whoever committed it may not have come to that
    at = run.standing.offsets
    check_unchanged(run.spark, {t: h for t, h in run.histories.items() if t in at}, at)
    left = [*run.left[:-1], *(recut(run, log, last) for last in run.left[-1:])]
    counts = run.inputs.partitions(run.plan) if left else {}
    for record in left:
        run.watch.say(state="recovering")
        run.runner.source = run.runner.source.of(record.topic_ids)
        run.standing, rest = settle_losses(
            run.inputs, run.plan, run.standing, counts, run.watch, run.histories, record
        )
        if log.open_batch() is None:
            log.begin(record)
        if rest is not None and run.runner.kept is not None:
            run.runner.kept.excuse(record.number)
        begun = plan_of(log.load_plan(record.plan))
        with _all_outputs(run, begun, log):
            run.replay(record, made_lenient(begun, run.plan), rest)
    log.store.delete(RESTORED)  # only now the log has all that was delivered
    _leave_topics(run, log)
    drop_copies(directory / COPIES, run.plan.retired, run.plan.retired_states)
    run.forget_read()  # journals count what waits from there on


def _leave_topics(run: Run, log: BatchLog) -> None:
    """Go on with the topics of the plan alone; batches that were run again may have read others."""
    state, source = log.load_state(), run.runner.source
    if state is None:
        return
    histories = only(source.histories, frozenset(state.start))
    run.runner.source = replace(source, histories=histories)
    run.go_on(as_the_state_reads(run.standing, state))


@contextmanager
def _all_outputs(run: Run, begun: Flow, log: BatchLog) -> Generator[None]:
    """Write to the outputs, too, that the plan has no more."""
    state, own = log.load_state(), run.runner.sinks
    if state is not None:
        run.runner.sinks = (
            *own,
            *dropped_outputs(
                begun,
                run.plan,
                state,
                log.store,
                run.runner.connections,
                run.runner.epoch,
            ),
        )
    try:
        yield
    finally:
        run.runner.sinks = own


def drop_copies(folder: Path, retired: Collection[int], states: Collection[int] = ()) -> None:
    """Remove the copies of chains and aggregates that the plan has no more; snapshots without them
    follow.

    Args:
        folder: Of the copies, `<state>-<p>`.
        retired: Numbers of chains.
        states: Of aggregates.
    """
    for path in folder.iterdir() if (retired or states) and folder.is_dir() else ():
        state = path.name.partition("-")[0]
        if not state.isdecimal():
            continue
        if number_of_state(int(state)) in retired or int(state) in states:
            wipe(path)


def read_first(run: Run, state: StateRecord, counts: Mapping[str, int]) -> Ending | None:
    """Read what comes before a stream is live; return why not all of it was read.

    Args:
        run: Its batches that were left are done.
        state: Says what comes first.
        counts: The partitions of its topics.

    Raises:
        DataLost: Records are gone under `on_data_loss: fail`.
    """
    warn_of_future(run.standing.batch_time, run.runner.clock())
    _settle(run, counts)
    if nameless := sorted(counts.keys() - run.standing.topic_ids.keys() - run.inputs.named.keys()):
        LOGGER.info(
            "the brokers give no ids to %s: only offsets show that such a topic was recreated",
            ", ".join(nameless),
        )
    for doing, goal in _first(run, state):
        if not reaches(run.standing.offsets, goal):
            run.watch.say(state=doing, counters=run.standing.counters)
            if ending := run.read_to(goal):
                return ending
            _settle(run, counts)
    log, mark = run.runner.log, run.runner.fingerprint
    if beginnings(log, run.standing.batch + 1, run.plan, mark):
        run.tick()  # what was added has its rows now, and not when the next record comes
    return None


def _settle(run: Run, counts: Mapping[str, int]) -> None:
    standing, _ = settle_losses(
        run.inputs, run.plan, run.standing, counts, run.watch, run.histories
    )
    run.go_on(standing)


def _first(run: Run, state: StateRecord) -> Iterator[tuple[RunState, Offsets]]:
    """Yield what is read first, and up to where; dimensions before events, files before topics."""
    yield "reading history", only(ends_of_histories(run.histories), frozenset(state.dimension_ends))
    left = unread(run.standing.offsets, state.dimension_ends)
    # a topic that was recreated since may end before the one that the state began with
    yield "loading dimensions", at_most(left, run.ends.ask(left))
    if run.plan.backfill is None:  # else all topics are read side by side
        yield "reading history", ends_of_histories(run.histories)

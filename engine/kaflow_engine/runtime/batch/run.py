"""One run of one pipeline on the driver: what its batches share."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import cast

from pyspark.sql import SparkSession

from kaflow_engine.connectors.contract import FinalizingSink
from kaflow_engine.errors import LossSuspected
from kaflow_engine.flow.flow import Flow
from kaflow_engine.plugins.finalizing import Finalizing
from kaflow_engine.runtime.batch.batch_limit import BatchLimit
from kaflow_engine.runtime.batch.dead_letter_limit import check_budget
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.batch.progress import Watch
from kaflow_engine.runtime.batch.runner import BatchDone, BatchRunner
from kaflow_engine.runtime.batch.snapshots import SnapshotKeeper
from kaflow_engine.runtime.batch.stop import Ending, Limits
from kaflow_engine.runtime.batch.task_metrics import side_output_errors, with_measures_of
from kaflow_engine.runtime.jobs.records import Records
from kaflow_engine.runtime.sink.opening import hearing_of
from kaflow_engine.runtime.sink.position_reports import PositionReporter
from kaflow_engine.runtime.source.end_offsets import EndOffsets
from kaflow_engine.runtime.source.history import Histories, ends_of_histories, still_ahead
from kaflow_engine.runtime.source.inputs import Inputs
from kaflow_engine.runtime.source.offsets import (
    before_topics,
    empty_ranges,
    ends_of,
    merged,
    next_cut,
    ranges_between,
    reaches,
    read_to_end,
    recreated,
)
from kaflow_engine.state.log.batch_log import BatchRecord, Offsets, Ranges
from kaflow_engine.telemetry.log_context import logging_of

LOGGER = logging.getLogger("kaflow.runtime")

_DEAD = ("dead_letter", "side_dead_letters")


@dataclass(slots=True, kw_only=True)
class Run:
    """Runs batches one after the other, and does what follows each."""

    spark: SparkSession
    plan: Flow
    runner: BatchRunner
    standing: Position
    ends: EndOffsets
    watch: Watch
    limits: Limits
    limit: BatchLimit
    drain_seconds: float
    positions: PositionReporter | None = None
    keeper: SnapshotKeeper | None = None
    left: Sequence[BatchRecord] = ()
    """Batches that earlier runs left, to be run again."""
    records: int = 0
    """Records that this run has read."""
    dead_letters: int = 0
    """Dead letters that it has sent."""
    _hearing: Sequence[Finalizing] = field(init=False)
    """What of transforms hears of batches that are committed; sinks hear themselves."""

    def __post_init__(self) -> None:
        self._hearing = hearing_of(self.plan, self.runner.connections)

    def batch(
        self, ranges: Ranges, records: Records | None = None, bounded_end: bool = False
    ) -> BatchDone:
        """Run the next batch."""
        with self._logging(self.standing.batch + 1):
            self._assert_same_topics()
            ends = self.ends.ask(ranges)
            done = self.runner.run_batch(
                self.standing, ranges, read_to_end(ranges, ends), records, bounded_end
            )
            self._after(done, ranges, ends)
        return done

    def go_on(self, standing: Position) -> None:
        """Go on from where losses were settled."""
        self.standing = standing
        self.runner.source = self.runner.source.of(standing.topic_ids)

    def take(self, goal: Offsets, records: Records | None) -> None:
        """Run the records up to a goal in one batch or in several.

        With several they are read again; a limit may end it before the goal.
        """
        ranges = ranges_between(self.standing.offsets, goal)
        if self.limit.fits(ranges):
            self.batch(ranges, records)
        else:
            self.read_to(goal)

    @property
    def keeps_up(self) -> bool:
        """Whether no more than another batch of the same size is left to read."""
        now = self.watch.now
        return sum(now.lag.values()) <= now.batch_records

    @property
    def ending(self) -> Ending | None:
        """Why no further batch may begin; None: one may."""
        if self.limits.stop.is_set():
            return "drained"
        most = self.limits.max_records
        return "limit" if most is not None and self.records >= most else None

    def read_to(self, goal: Offsets) -> Ending | None:
        """Run batches until all offsets of a goal are read; else return why they are not."""
        while not reaches(self.standing.offsets, goal):
            if ending := self.ending:
                return ending
            at = self.standing.offsets
            most = self.limit.most(ranges_between(at, merged(at, goal)))
            ends = ends_of(next_cut(at, goal, most))
            ends = before_topics(at, ends, ends_of_histories(self.histories))
            self.batch(ranges_between(at, merged(at, ends)))
        return None

    @property
    def inputs(self) -> Inputs:
        """What the pipeline reads."""
        return Inputs(self.runner.source.topics, self.runner.source.named)

    @property
    def histories(self) -> Histories:
        """Where topics begin in files."""
        return self.runner.source.histories

    def tick(self, bounded_end: bool = False) -> BatchDone:
        """Run an empty batch; the inputs may end with it."""
        return self.batch(empty_ranges(self.standing.offsets), bounded_end=bounded_end)

    def replay(self, record: BatchRecord, plan: Flow, left: Ranges | None = None) -> BatchDone:
        """Run a batch again that an earlier run left open.

        Args:
            record: The batch.
            plan: The plan it was begun with.
            left: What is left of its records where some were lost.
        """
        with self._logging(record.number):
            records = None if left is None else self.runner.records_of(left)
            done = self.runner.replay(self.standing, record, plan, records)
            self._after(done, record.ranges, self.ends.ask(record.ranges))
        return done

    def say_committed(self) -> None:
        """Tell plugins up to which batch all is committed."""
        for each in self._finalizing() if self.standing.batch else ():
            each.finalized(self.standing.batch)

    def close(self) -> None:
        """Let go of what is not the session's."""
        self.runner.close()
        if self.positions is not None:
            self.positions.close()
        for each in self._finalizing():
            each.ended()

    def _finalizing(self) -> Iterator[Finalizing]:
        for sink in self.runner.sinks:
            if sink.capabilities.finalizes:
                yield cast(FinalizingSink, sink)
        yield from self._hearing

    def forget_read(self) -> None:
        """Tell sources what no batch will read again."""
        for name, source in self.runner.source.named.items():
            source.forget(self.standing.offsets.get(name, {}), self.runner.clock())

    def _assert_same_topics(self) -> None:
        """Check that the topics are those that offsets belong to; files need none to be read."""
        standing = self.standing
        ahead = still_ahead(standing.offsets, self.histories)
        read = frozenset(topic.name for topic in self.plan.sources if not ahead.get(topic.name))
        known = {t: i for t, i in standing.topic_ids.items() if t in read}
        for topic in recreated(known, self.ends.topic_ids(known)):
            raise LossSuspected(f"topic '{topic}' was recreated while it was read")

    def _logging(self, batch: int) -> AbstractContextManager[None]:
        return logging_of(self.plan.name, self.runner.epoch, batch)

    def _after(self, done: BatchDone, ranges: Ranges, ends: Offsets) -> None:
        done = replace(done, report=with_measures_of(self.runner.sinks, done.report))
        self.standing = done.standing
        self.limit.took(ranges, done.report.sizes)
        self.records += sum(part.count for part in done.report.partitions.values())
        self.dead_letters += sum(done.report.counters.get(name, 0) for name in _DEAD)
        self.dead_letters += sum(note.get("refused", 0) for note in done.report.notes)
        if self.positions is not None:
            self.positions.report(done.standing.batch, done.standing.offsets)
        self.watch.batch_done(done, ends, self.plan, self.runner.epoch)
        now = self.watch.now
        for error in side_output_errors(done.report):
            LOGGER.warning("%s", error)
        LOGGER.debug("committed: %d records in %.0f ms", now.batch_records, now.batch_ms)
        if self.keeper is not None:
            self.keeper.after_batch(self.plan, self.standing, self.runner.clock())
            if self.keeper.mark != now.checkpoint:
                self.watch.say(checkpoint=self.keeper.mark)
        if self.runner.kept is not None:
            self.runner.kept.forget()
        self.forget_read()
        self.say_committed()
        check_budget(self.plan, self.records, self.dead_letters)

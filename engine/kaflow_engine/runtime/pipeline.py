"""The life cycle of one pipeline: take over, recover open batches, load dimensions, go live."""

import logging
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kaflow_engine.connectors.run_log import RunLog, RunStart
from kaflow_engine.flow.flow import Flow
from kaflow_engine.masking import masked
from kaflow_engine.model.config import Config
from kaflow_engine.plan.evolution.sources import begun_again
from kaflow_engine.plan.planner.functions import function_modules
from kaflow_engine.runtime.batch.batch_backup import KeptBatches, batches_left
from kaflow_engine.runtime.batch.batch_limit import limit_of
from kaflow_engine.runtime.batch.checkpoint_upload import Checkpointer
from kaflow_engine.runtime.batch.position import load_standing
from kaflow_engine.runtime.batch.progress import Watch
from kaflow_engine.runtime.batch.run import Run
from kaflow_engine.runtime.batch.runner import BatchRunner
from kaflow_engine.runtime.batch.snapshots import SnapshotKeeper, in_tasks, in_this_process
from kaflow_engine.runtime.batch.stop import Ending, Limits
from kaflow_engine.runtime.clock.batch_clock import BatchClock
from kaflow_engine.runtime.drive.bounded import BoundedRead
from kaflow_engine.runtime.drive.live import LiveStream
from kaflow_engine.runtime.drive.polled import PolledStream
from kaflow_engine.runtime.failures.failures import to_error
from kaflow_engine.runtime.jobs.executor import Shipment
from kaflow_engine.runtime.jobs.resident import resident_task
from kaflow_engine.runtime.planning.columns import connection_of_source
from kaflow_engine.runtime.planning.plan_codec import fingerprint
from kaflow_engine.runtime.restart_policy import RestartPolicy, keep_trying
from kaflow_engine.runtime.sink.bookkeeping import (
    home_log_of,
    log_at_home,
    open_plan,
    records_of_run,
    refuse_moved,
    with_clusters,
)
from kaflow_engine.runtime.sink.claims import Claims
from kaflow_engine.runtime.sink.opening import connections_of, registries_of, sinks_of_run
from kaflow_engine.runtime.sink.position_reports import position_reporter
from kaflow_engine.runtime.source.end_offsets import EndOffsets
from kaflow_engine.runtime.source.history_files import open_histories
from kaflow_engine.runtime.source.inputs import open_inputs
from kaflow_engine.runtime.source.offsets import only
from kaflow_engine.runtime.source.record_source import RecordSource
from kaflow_engine.runtime.spark.cluster import await_executor, copies_of, task_slots
from kaflow_engine.runtime.takeover.fencing import check_start, doubtful, last_epoch
from kaflow_engine.runtime.takeover.open_state import PlanChange, open_state, refuse_change
from kaflow_engine.runtime.takeover.rebuild import (
    Approved,
    approved_rebuild,
    begin,
    move_aside,
    new_state_of,
    replace_state,
)
from kaflow_engine.runtime.takeover.recovery import read_first, recover
from kaflow_engine.runtime.takeover.restore import bring_back, open_checkpoints
from kaflow_engine.runtime.tasks.settings import TaskSettings, traced_topics
from kaflow_engine.state.log.approval import is_made, load_rebuild
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord
from kaflow_engine.state.storage.store import LocalStore
from kaflow_engine.telemetry.log_context import logging_of
from kaflow_engine.telemetry.progress import PipelineSummary

LOGGER = logging.getLogger("kaflow.runtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRun:
    """Runs one pipeline until a limit, a stop, or a failure that trying again cannot fix."""

    spark: SparkSession
    plan: Flow
    config: Config
    limits: Limits
    watch: Watch
    change: PlanChange = refuse_change
    clock: BatchClock = field(default_factory=BatchClock)
    newest: Callable[[], SparkSession] | None = None
    """Gives the session that follows `spark` once that has ended; None: none does."""
    pipelines: int = 1
    """How many the session has to run."""

    def run(self) -> PipelineSummary:
        """Run the pipeline, whose state directory the caller holds.

        Raises:
            KaflowError: It failed for good.
        """
        start = time.monotonic()
        directory = Path(self.config.state.rocksdb.path).absolute() / self.plan.pipeline
        self.watch.say(state="starting")
        try:
            with logging_of(self.plan.name):
                ending = self._supervise(directory)
        except Exception as error:
            failure = to_error(error, f"running pipeline '{self.plan.name}'")
            self.watch.say(state="failed", last_error=masked("", str(failure)))
            raise failure from error
        self.watch.say(state="stopped")
        return PipelineSummary(
            pipeline=self.plan.name,
            ending=ending,
            batches=self.watch.batches,
            records=self.watch.now.records,
            seconds=time.monotonic() - start,
            counters=self.watch.now.counters,
        )

    def _supervise(self, directory: Path) -> Ending:
        control = home_log_of(self.config, self.plan)

        def attempt() -> Ending:
            run = replace(self, spark=self.newest()) if self.newest else self
            with ExitStack() as resources:
                return run.attempt(directory, control, resources)

        policy = RestartPolicy(self.config.retry_deadline / 1000)
        return keep_trying(attempt, policy, self.plan.name, self.watch, self.limits)

    def attempt(self, directory: Path, control: RunLog, resources: ExitStack) -> Ending:
        """Take the state over and run, once; whoever calls decides what follows a failure."""
        patience = self.config.retry_deadline / 1000
        await_executor(self.spark, self.config.spark.master, patience, self.limits.stop.is_set)
        approved = approved_rebuild(
            BatchLog(LocalStore(directory)), self.plan, self.change, connections_of(self.config)
        )
        if approved is not None:
            self._end(approved, directory, log_at_home(self.config, approved.plan, control))
        run, log, state = self._begin(directory, control, resources, self.plan)
        return self._live(run, log, state, directory)

    def _end(self, approved: Approved, directory: Path, control: RunLog) -> None:
        """Finish what earlier runs have left of a state that will be rebuilt, and leave it."""
        with ExitStack() as resources:
            run, log, state = self._begin(directory, control, resources, approved.plan)
            recover(run, log, directory)
        begin(log, state, approved.approval, begun_again(approved.plan, self.plan))

    def _begin(
        self, directory: Path, home: RunLog, resources: ExitStack, wanted: Flow
    ) -> tuple[Run, BatchLog, StateRecord]:
        """Take a state over, for a plan; nothing is read yet."""
        store = LocalStore(directory)
        rebuild = load_rebuild(store)
        checkpoints = open_checkpoints(self.config, wanted)
        if rebuild is not None and not is_made(directory, rebuild):
            move_aside(directory, rebuild)
        elif checkpoints is not None:
            bring_back(store, checkpoints, partial(self.watch.say, state="restoring"))
            rebuild = load_rebuild(store)
        log = BatchLog(store)
        histories = open_histories(self.spark, log, wanted)
        reached = partial(connection_of_source, self.config)
        inputs = open_inputs(self.config.kafka, log, wanted, directory.parent, reached)
        new_state = new_state_of(self.plan, self.config, inputs, self.clock(), histories, rebuild)
        state, plan = open_state(log, wanted, inputs, new_state, self.change)
        refuse_moved(log, plan)
        control = with_clusters(home, self.config, plan, open_plan(log))
        resources.callback(control.close)
        control.ensure()
        skew, tell = self.config.max_clock_skew, self.watch.say
        self.clock.confirm(control.broker_time, skew, lambda ahead: tell(clock_ahead=ahead))
        start = control.start_run(
            state.state_id,
            state.generation,
            partial(
                check_start,
                log,
                state,
                plan,
                rebuild,
                checkpoints is not None,
                connections=connections_of(self.config),
            ),
            after=max(last_epoch(log), rebuild.epoch if rebuild else 0),
            doubtful=doubtful(log) if plan.delivery == "exactly_once" else None,
        )
        LOGGER.debug("run %d begins behind batch %d", start.epoch, log.next_number() - 1)
        kept: Mapping[int, Mapping[str, Any]] = start.batches if checkpoints else {}
        source = RecordSource(
            spark=self.spark,
            topics=inputs.topics,
            pipeline=plan.pipeline,
            histories=histories,
            topic_ids=state.topic_ids,
            named=inputs.named,
        )
        carrier = None
        if checkpoints is not None:
            carrier = Checkpointer(checkpoints, store, state, start.epoch)
            carrier.take_over()
            resources.callback(carrier.close, self.config.drain_deadline / 1000)
        if rebuild is not None:  # the bucket's head names the new state now
            replace_state(rebuild, store, control, plan, state, connections_of(self.config))
        run = self._prepare(directory, log, state, plan, source, control, start, carrier)
        run.left = batches_left(log, kept, start.epoch, plan.name)
        source.know(batch.found for batch in run.left)  # before any source looks for more
        resources.callback(run.close)
        return run, log, state

    def _prepare(
        self,
        directory: Path,
        log: BatchLog,
        state: StateRecord,
        plan: Flow,
        source: RecordSource,
        control: RunLog,
        start: RunStart,
        carrier: Checkpointer | None,
    ) -> Run:
        connections, checkpoint = connections_of(self.config), self.config.state.rocksdb.checkpoint
        records, letters = records_of_run(self.config, plan, state, start, open_plan(log))
        shipment = Shipment.of(
            TaskSettings(
                plan=plan,
                directory=directory,
                state=state.ref,
                epoch=start.epoch,
                snapshots=log.store,
                sink=records,
                letters=letters,
                driver=os.getpid(),
                registries=registries_of(self.config),
                connections=connections,
                copies=copies_of(self.config, plan),
                functions=function_modules(self.config),
                traced=traced_topics(plan, self.config.otlp),
            )
        )
        standing = load_standing(log, state)
        return Run(
            spark=self.spark,
            plan=plan,
            runner=BatchRunner(
                source.of(standing.topic_ids),
                log,
                fingerprint(plan),
                shipment,
                partial(task_slots, self.config.spark.master, self.spark),
                KeptBatches(control, start.batches, lambda: carrier.covered) if carrier else None,
                self.clock,
                sinks=sinks_of_run(
                    records, letters, plan, state, log.store, control, start, connections
                ),
                claims=Claims.of(control, plan, letters),
                resident=resident_task(self.spark, self.config.spark.master, self.pipelines),
            ),
            standing=standing,
            ends=EndOffsets(source.topics, named=source.named),
            watch=self.watch,
            limits=self.limits,
            limit=limit_of(self.config, plan, source),
            drain_seconds=self.config.drain_deadline / 1000,
            positions=position_reporter(source.topics, plan, self.config),
            keeper=SnapshotKeeper(
                in_tasks(self.spark, shipment)
                if shipment.settings.copies
                else in_this_process(directory, state.ref, log, log.store),
                log,
                state.ref,
                log.store,
                checkpoint.interval,
                carrier,
            )
            if checkpoint.enabled
            else None,
        )

    def _live(self, run: Run, log: BatchLog, state: StateRecord, directory: Path) -> Ending:
        counts = run.inputs.partitions(run.plan)
        places = {topic: range(count) for topic, count in counts.items()}
        finite = run.inputs.finite(counts)  # an open batch may be the last of what ends
        goal = run.ends.ask(places) if self.limits.until_caught_up else None
        recover(run, log, directory)
        if run.keeper is not None:
            run.keeper.take_first(run.plan, run.standing, self.clock())
        if ending := read_first(run, state, counts):
            return ending
        self.watch.say(state="running", failures=0, counters=run.standing.counters)
        if run.plan.backfill is not None:
            return BoundedRead(run, run.plan.backfill, state.goal).follow()
        kafka = run.runner.source.of_spark(counts)
        if kafka is None:
            return PolledStream(run, counts, self.config.batch_interval).follow(goal, finite)
        checkpoint = directory / "spark" / str(run.runner.epoch)
        stream = LiveStream(run, kafka, checkpoint, self.config.batch_interval)
        return stream.follow(only(run.standing.offsets, frozenset(counts)), goal)

"""Runs pipelines without Spark, each in a forked process that may be killed or stopped.

Everything but Spark is the real thing: the supervisor, the batch log, RocksDB, change files, the
transactional sink. `python -m tests.acceptance.crash_here` is the process that is forked; it holds
no client and no thread, so that its children start clean and at once.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3.session  # noqa: F401  # children would each load it
import deltalake  # noqa: F401  # the same
import pandas  # noqa: F401  # pyarrow wants it later, and children would each load it
import pyarrow as pa
import pyarrow.dataset  # the same
import pyiceberg.catalog.sql  # noqa: F401  # the same

from kaflow_engine.connectors.kafka.delivery import deliver as kafka_sink
from kaflow_engine.connectors.kafka.delivery.pace import Pace
from kaflow_engine.connectors.kafka.read import read_ranges
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.chains.clocks import clocks
from kaflow_engine.flow.flow import Backfill, Flow
from kaflow_engine.flow.graph import last_level
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.model.project import load_project
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.watermark import next_change
from kaflow_engine.plan.evolution.diff import change
from kaflow_engine.runtime import pipeline, restart_policy
from kaflow_engine.runtime.application import run_backfill
from kaflow_engine.runtime.batch import runner as batches
from kaflow_engine.runtime.batch.progress import Watch
from kaflow_engine.runtime.batch.stop import Limits
from kaflow_engine.runtime.clock.batch_clock import BatchClock
from kaflow_engine.runtime.clock.ticks import clocks_at, due_chains
from kaflow_engine.runtime.jobs.executor import Executed, executed
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.runtime.source import record_source
from kaflow_engine.runtime.tasks import crash
from kaflow_engine.runtime.tasks.level_task import first_task, level_task, whole_task
from kaflow_engine.runtime.tasks.memory import settle_in
from kaflow_engine.state.storage.lease import hold_lease
from tests.acceptance.crash_orders import End, Order
from tests.acceptance.crash_pipeline import START, copy_plan, crash_plan
from tests.acceptance.crash_relations import meetings_plan, relations_plan
from tests.acceptance.crash_sinks import settings_of, sinks_plan
from tests.acceptance.faults_here import fill, kill_behind, wild

ROOT = Path(__file__).parents[2]
NOW = START + 10 * 60_000
"""Batch time of every batch: a clock that stands still makes runs comparable."""
TOGETHER = 4
_NO_SPARK = SimpleNamespace(
    sparkContext=SimpleNamespace(
        setLocalProperty=lambda *a: None,
        _accumulatorServer=SimpleNamespace(),
        _gateway=SimpleNamespace(),
        _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False)),
    )
)
"""A session that lives, and does nothing."""


class Forks:
    """A process that forks runs; use it in a `with`."""

    def __enter__(self) -> "Forks":
        paths = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.crash_here"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
            text=True,
        )
        return self

    def __exit__(self, *about: object) -> None:
        self._server.stdin.close()
        self._server.wait(20)
        self._server.stdout.close()

    def run(self, orders: Sequence[Order]) -> list[End]:
        """Run until each has ended, or has stopped."""
        return self._ask({"run": [asdict(order) for order in orders]})

    def wake(self, ends: Sequence[End]) -> list[End]:
        """Let those go on that have stopped."""
        return self._ask({"wake": [end.pid for end in ends]})

    def _ask(self, what: dict[str, Any]) -> list[End]:
        self._server.stdin.write(json.dumps(what) + "\n")
        self._server.stdin.flush()
        return [End(**end) for end in json.loads(self._server.stdout.readline())]


def main() -> None:
    """Fork what standard input asks for."""
    settle_in()  # so that no child looks for garbage among what all of them share
    said: dict[int, Path] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        orders = [Order(**order) for order in asked.get("run", ())]
        ends: dict[int, dict[str, Any]] = {}
        pids: list[int] = []
        for pid in asked.get("wake", ()):
            _wait_for_room(said, pids, ends)
            pids.append(pid)
            os.kill(pid, signal.SIGCONT)
        for order in orders:
            _wait_for_room(said, pids, ends)
            file = Path(order.path) / f"{order.name}.said"
            pid = os.fork()
            if pid == 0:
                _child(order, file)
            said[pid] = file
            pids.append(pid)
        while set(pids) - set(ends):
            _wait(said, ends)
        sys.stdout.write(json.dumps([ends[pid] for pid in pids]) + "\n")
        sys.stdout.flush()
    for pid in said:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _wait_for_room(said: dict[int, Path], pids: list[int], ends: dict[int, dict[str, Any]]) -> None:
    while len(set(pids) - set(ends)) >= TOGETHER:
        _wait(said, ends)


def _wait(said: dict[int, Path], ends: dict[int, dict[str, Any]]) -> None:
    pid, status = os.waitpid(-1, os.WUNTRACED)
    how = "ended" if os.WIFEXITED(status) else "stopped" if os.WIFSTOPPED(status) else "killed"
    text = said[pid].read_text() if how == "ended" else ""
    code = os.WEXITSTATUS(status) if how == "ended" else 0
    if how == "killed" and os.WTERMSIG(status) != signal.SIGKILL:
        text = f"signal {os.WTERMSIG(status)}"
    if how != "stopped":
        del said[pid]
    ends[pid] = {"how": how, "pid": pid, "said": text, "exit_code": code}


def _child(order: Order, file: Path) -> None:
    signal.alarm(600)  # a run that hangs must not hang the tests
    os.environ[crash.VARIABLE] = order.crash_at
    code = 0
    try:
        file.write_text("")
        _run(order)
    except KaflowError as error:
        file.write_text(f"{type(error).__name__}: {error}")
        code = error.exit_code
    except BaseException as error:
        file.write_text(repr(error))
        code = 99
    finally:
        os._exit(code)


def _run(order: Order) -> None:
    record_source.RecordSource.read = _read  # type: ignore[method-assign]
    batches.no_records = lambda spark: RECORDS.empty_table()  # type: ignore[assignment]
    batches.execute_batch = _staged if order.staged else _whole  # type: ignore[assignment]
    record_source.RecordSource.reads_topics = False  # type: ignore[assignment]
    pipeline.LiveStream = _Live  # type: ignore[misc]
    restart_policy._BACKOFF_S = 0.02
    if order.piece is not None:
        pace = Pace(fill=0, queued=4 * order.piece, flush=30, stall=30)
        kafka_sink.pace_of = lambda *about: pace  # type: ignore[assignment]
    if order.full_after is not None:
        fill(order.full_after)
    if order.writes is not None:
        kill_behind(order.writes)
    config = config_of(order)
    plan = plan_of(order)
    if order.wanted is not None:
        wanted = Backfill(start=order.wanted[0], end=order.wanted[1], force=order.force)
        run_backfill(plan, config, wanted, spark=_NO_SPARK)  # type: ignore[arg-type]
        return
    ControlTopic.broker_time = lambda control: NOW + order.brokers_ahead  # type: ignore[method-assign]
    run = pipeline.PipelineRun(
        spark=_NO_SPARK,  # type: ignore[arg-type]
        plan=plan,
        config=config,
        limits=Limits(until_caught_up=True, stop=threading.Event()),
        watch=Watch(order.name, lambda progress: None),
        clock=BatchClock(wild(order.jumps_after, NOW), lambda: 0),
        change=change,
    )
    with hold_lease(Path(order.path) / run.plan.pipeline):
        run.run()


def plan_of(order: Order) -> Flow:
    """Plan the pipeline of a run."""
    if order.file:
        return prepare(_of_file(order), config_of(order))[0].plan
    if order.pipeline == "copy":
        return copy_plan(order.name, order.inputs, order.delivery)
    if order.pipeline == "relations":
        return relations_plan(order.name, order.inputs)
    if order.pipeline == "meetings":
        return meetings_plan(order.name, order.inputs)
    if order.pipeline == "sinks":
        return sinks_plan(order.name, order.inputs, order.sink, order.connection)
    about = (order.delivery, order.warehouse, order.changed, order.on_data_loss, order.on_error)
    return crash_plan(order.name, order.inputs, *about, several=order.several)


def _of_file(order: Order) -> Sequence[PipelineSpec]:
    return load_project([Path(order.file)], variables={}).pipelines if order.file else ()


def config_of(order: Order) -> Config:
    """Return the configuration of a run, with what its file brings."""
    keys = {"accessKey": "any", "secretKey": "any", "region": "eu-west-1"}
    store, to_bucket = order.bucket or order.connection.get("endpoint"), bool(order.bucket)
    s3 = {"enabled": to_bucket, "bucket": "kaflow", "prefix": "t", "endpoint": store, **keys}
    checkpoint = {"interval": order.snapshots, **({"s3": s3} if store else {})}
    config = Config.model_validate(
        {
            "kafka": {"brokers": order.broker, "transaction_timeout": order.transaction_timeout},
            "state": {"rocksdb": {"path": order.path, "checkpoint": checkpoint}},
            "max_records": order.most,
            "warehouse": order.warehouse or ".",
            "retry_deadline": order.patience,
            "max_clock_skew": order.max_clock_skew,
            **settings_of(order.sink, order.connection),
        }
    )
    return with_brought(config, _of_file(order))


class _Live:
    """Takes the records that a stream would bring, with the same cuts at each try."""

    def __init__(self, run: Any, *about: object) -> None:
        self._run = run

    def follow(self, start: Any, goal: Any) -> str:
        run = self._run
        run.read_to(goal)
        while self._due():
            run.tick()
        return "caught up"

    def _due(self) -> bool:
        run, at = self._run, self._run.standing
        everywhere = {(t, p): True for t, ps in at.offsets.items() for p in ps}
        now = max(run.runner.clock(), at.batch_time)
        after = next_change(at.watermark, clocks(run.plan), everywhere, now)
        return bool(due_chains(clocks_at(after.values, now), at.next_due))


def _read(source: Any, ranges: Any) -> pa.Table:
    parts = []
    for topic, found in ranges.items():  # a consumer for each topic, not for each partition
        more = {partition: bounds for partition, bounds in found.items() if bounds[1] > bounds[0]}
        starts = {partition: first for partition, (first, _) in more.items()}
        ends = {partition: end for partition, (_, end) in more.items()}
        if more:
            where = source.topics.kafka(topic), source.topics.place(topic).topic
            read = read_ranges(*where, starts, ends)
            parts.append(read.sort_by([("partition", "ascending"), ("offset", "ascending")]))
    return pa.concat_tables(parts).cast(RECORDS)


def _whole(records: pa.Table, batch: Any, shipment: Any, *sizes: int) -> Executed:
    return executed(whole_task(shipment.data, batch, iter(records.to_batches())))


def _staged(records: pa.Table, batch: Any, shipment: Any, *sizes: int) -> Executed:
    given = list(first_task(shipment.data, batch, 1, iter(records.to_batches())))
    for stage in range(1, last_level(shipment.settings.plan) + 1):
        streams = (data for _, data in given)
        given = list(level_task(shipment.data, batch, stage, 1, streams))
    return executed(given)


if __name__ == "__main__":
    main()

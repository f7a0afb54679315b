"""Pipelines whose states are on disk as a run leaves them, without Spark or a broker."""

import json
import os
from collections import defaultdict
from dataclasses import replace
from random import Random

import pyarrow as pa

from kaflow_engine.flow.chains.clocks import clocks
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import HEADERS, RECORDS
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.levels import run_levels
from kaflow_engine.operators.rows.reports import read_reports, report_rows
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.operators.watermark import advance
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.runtime.batch.position import Position, counted, load_standing, next_due
from kaflow_engine.runtime.batch.snapshots import SnapshotKeeper, in_this_process
from kaflow_engine.runtime.batch.task_metrics import changes_of
from kaflow_engine.runtime.clock.ticks import clocks_at, due_chains
from kaflow_engine.runtime.planning.plan_codec import fingerprint, plan_of, plan_text
from kaflow_engine.runtime.source.offsets import empty_ranges, ends_of
from kaflow_engine.runtime.tasks.settings import TaskSettings
from kaflow_engine.runtime.tasks.worker import WorkerTask
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord, CommitRecord, StateRecord
from kaflow_engine.state.storage.store import LocalStore

START = 1_700_000_000_000
"""Epoch milliseconds of the first event."""
MINUTE = 60_000
SOURCES = {"events": 2, "users": 1, "payments": 2}
"""Topics and their partitions."""
COLUMNS = {
    "events": {"id": "VARCHAR", "n": "BIGINT", "tags": "VARCHAR[]"},
    "users": {"id": "VARCHAR", "tier": "VARCHAR", "born": "DATE"},
    "payments": {"n": "BIGINT", "amount": "DECIMAL(9,2)"},
}
JOINS = {
    "users": "LEFT JOIN users u ON e.id = u.id",
    "payments": "LEFT JOIN payments y ON e.n = y.n",
}


def state_plan(*joins: str, name: str = "shop", partitions: int = 4, **more: object) -> Flow:
    """Plan events with what they join: `users` (a dimension), `payments` (an event side).

    Of `outputs` among what is given beside, the joins are the topics that their queries read.
    """
    columns = {"users": ", u.tier", "payments": ", y.amount"}
    chosen = "".join(columns[join] for join in joins)
    query = f"SELECT e.id, e.n{chosen} FROM events e " + " ".join(map(JOINS.get, joins))
    written = {"query": query, "output": {"topic": f"{name}.out", "format": "json", "key": "id"}}
    spec = {
        "name": name,
        **({} if "outputs" in more else written),
        "state": {
            "dimensions": [topic for topic in ("users",) if topic in joins],
            "events": {"default_ttl": "20m"},
        },
        "partitions": partitions,
        "dimensions_first": False,
        **more,
    }
    schemas = {
        topic: tuple(Column(*each) for each in COLUMNS[topic].items())
        for topic in ("events", *joins)
    }
    return build_plan(PipelineSpec.model_validate(spec), Config(), schemas).plan


OUTPUTS = [
    {
        "query": "SELECT e.id, y.amount FROM events e JOIN payments y ON e.n = y.n",
        "topic": "paid",
        "key": "id",
    },
    {
        "query": "SELECT e.id, e.n, u.tier, y.amount FROM events e JOIN payments y ON e.n = y.n "
        "JOIN users u ON e.id = u.id",
        "topic": "tiers",
    },
    {"query": "SELECT n, amount FROM payments", "topic": "amounts", "key": "n"},
]
"""Of three chains; rows of the second one part."""


class StateHere:
    """A pipeline that is run batch by batch; each batch opens and closes what a task would."""

    def __init__(self, root, plan):
        self.directory = root / plan.pipeline
        self.log = BatchLog(LocalStore(self.directory))
        self.output = defaultdict(list)
        """Values by key, in order."""
        if self.log.load_state() is None:
            start = {t.name: {p: 0 for p in range(SOURCES[t.name])} for t in plan.sources}
            self.log.save_plan(fingerprint(plan), plan_text(plan))
            self.log.create_state(
                StateRecord(
                    state_id="s1",
                    generation=1,
                    partitions=plan.partitions,
                    created_ms=START,
                    start=start,
                    dimension_ends={},
                    schemas={},
                    fingerprint=fingerprint(plan),
                )
            )

    @property
    def state(self):
        """The record of the state, read again."""
        return self.log.load_state()

    @property
    def plan(self):
        """The plan that the state has."""
        return plan_of(self.log.load_plan(self.state.fingerprint))

    @property
    def standing(self):
        """Where the log ends."""
        return load_standing(self.log, self.state)

    def begin(self, records, batch_time):
        """Log a batch of records that were not read yet."""
        self.log.load_state()
        standing = self.standing
        ranges = empty_ranges(standing.offsets)
        for row in records.select(["topic", "partition", "offset"]).to_pylist():
            first, end = ranges[row["topic"]][row["partition"]]
            ranges[row["topic"]][row["partition"]] = first, max(end, row["offset"] + 1)
        return self.log.begin(
            BatchRecord(
                number=standing.batch + 1,
                epoch=1,
                plan=self.state.fingerprint,
                batch_time=max(batch_time, standing.batch_time),
                watermark=standing.watermark.values,
                ranges=ranges,
                read_to_end=tuple((t, p) for t, ps in ranges.items() for p in ps),
                bounded_end=False,
            )
        )

    def run(self, records, batch_time, snapshot=False):
        """Run a batch to the end of its commit."""
        self.finish(self.begin(records, batch_time), records, snapshot)

    def finish(self, batch, records, snapshot=False):
        """Run a batch that is logged, and commit it."""
        standing, plan = self.standing, self.plan
        context = BatchContext(
            batch=batch.number,
            batch_time=batch.batch_time,
            watermarks=batch.watermark,
            epoch=1,
            due=due_chains(clocks_at(batch.watermark, batch.batch_time), standing.next_due),
        )
        with WorkerTask(self._settings(plan), context, range(plan.partitions)) as task:
            reports = run_levels(plan, context, records, task)
        report = read_reports(pa.concat_tables([reports, self._notes(task)]))
        places = dict.fromkeys(batch.read_to_end, True)
        watermark = advance(standing.watermark, clocks(plan), report, batch.batch_time, places)
        done = Position(
            batch=batch.number,
            batch_time=batch.batch_time,
            offsets=ends_of(batch.ranges),
            watermark=watermark,
            next_due=next_due(standing, batch, report, watermark.marks),
            counters=counted(standing.counters, report),
        )
        self.log.commit(
            CommitRecord(
                number=batch.number,
                epoch=batch.epoch,
                changes=dict(changes_of(report)),
                watermark=watermark.to_json(),
                next_due=dict(done.next_due),
                counters=dict(done.counters),
            )
        )
        for rows in task.output:
            for row in rows.to_pylist():
                self.output[row["key"]].append(row["value"])
        if snapshot:
            about = self.state.ref, self.log, self.log.store
            take = in_this_process(self.directory, *about)
            keeper = SnapshotKeeper(take, self.log, self.state.ref, self.log.store, 0)
            keeper.after_batch(plan, done, batch.batch_time)

    def _settings(self, plan):
        return TaskSettings(
            plan=plan,
            directory=self.directory,
            state=self.state.ref,
            epoch=1,
            snapshots=self.log.store,
            sink=None,
            driver=os.getpid(),
        )

    @staticmethod
    def _notes(task):
        return report_rows([{"note": note} for note in task.notes()])


def random_batches(seed: int, plan: Flow, batches: int, size: int = 12, apart: int = 5):
    """Return records (schema RECORDS) and batch time of each batch, minutes `apart`."""
    dice = Random(seed)
    offsets: dict[tuple[str, int], int] = defaultdict(int)
    found = []
    for number in range(batches):
        rows = []
        for _ in range(dice.randint(size // 2, size)):
            topic = dice.choice([topic.name for topic in plan.sources])
            place = topic, dice.randrange(SOURCES[topic])
            at = START + (number * apart + dice.randint(-3, 3)) * MINUTE
            rows.append((*place, offsets[place], at, *_record(dice, topic)))
            offsets[place] += 1
        found.append((record_table(rows), START + number * apart * MINUTE))
    return found


def record_table(rows):
    """Return rows (topic, partition, offset, timestamp, key, value) as schema RECORDS."""
    rows = sorted(rows, key=lambda row: row[:3])
    columns = list(zip(*rows, strict=True)) or [()] * 6
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, RECORDS, strict=False)]
    return pa.table([*arrays, pa.nulls(len(rows), HEADERS)], schema=RECORDS)


def _record(dice: Random, topic: str) -> tuple[bytes, bytes | None]:
    user, n = f"u{dice.randrange(9)}", dice.randrange(15)
    match topic:
        case "events":
            value = {"id": user, "n": n, "tags": ["a", user]}
        case "users":
            value = {"id": user, "tier": dice.choice("gs"), "born": "2001-02-03"}
        case _:
            value = {"n": n, "amount": f"{dice.randrange(900)}.50"}
    key = user if topic != "payments" else str(n)
    if topic == "events" and dice.random() < 0.05:
        return key.encode(), b"no json"
    if topic == "users" and dice.random() < 0.1:
        return key.encode(), None
    return key.encode(), json.dumps(value).encode()


def renamed(plan: Flow, name: str) -> Flow:
    """Return the same plan for a state of another name."""
    return replace(plan, pipeline=name, name=name)

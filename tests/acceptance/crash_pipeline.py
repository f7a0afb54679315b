"""A pipeline with all that a crash could spoil: two steps, waiting rows, expiry, dead letters."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import topic_sinks, with_avro_ids
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.storage.store import LocalStore
from tests.committed import read_committed

START = 1_700_000_000_000
"""Epoch milliseconds of the first event."""
STEP = 60_000
USERS, KNOWN = 12, 10
"""Users, and how many of them ever have a profile."""
SIDES = {"events": ("id", "n"), "profiles": ("id", "tier"), "payments": ("n", "amount")}
PARTITIONS = {"events": 3, "profiles": 2, "payments": 2}

QUERY = """
SELECT e.id, e.n, p.tier, y.amount
FROM "{0}.events" e
LEFT JOIN "{0}.profiles" p ON e.id = p.id
LEFT JOIN "{0}.payments" y ON e.n = y.n
"""
FEW = "few"
"""Behind the name of a pipeline: its second table."""
AVRO_ID = 7
CHANGED = QUERY.replace(
    'LEFT JOIN "{0}.profiles" p', """LEFT JOIN (SELECT * FROM "{0}.profiles" WHERE tier <> 'x') p"""
)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What readers of committed records see, and what the pipeline counted."""

    rows: dict[bytes, list[bytes | None]]
    """By key, in order; None deletes."""
    letters: list[bytes]
    counters: dict[str, int]


def load_topics(kafka: KafkaSettings, name: str, events: int) -> None:
    """Create the input topics `<name>.<side>` and fill them."""
    for side, count in PARTITIONS.items():
        create_topic(kafka, f"{name}.{side}", count)
    producer = open_producer(kafka, **{"enable.idempotence": True}).api
    for side, key, value, at in _records(events):
        producer.produce(f"{name}.{side}", value, key, timestamp=at)
    assert producer.flush(30) == 0


def crash_plan(
    name: str,
    inputs: str,
    delivery: str = "exactly_once",
    warehouse: str = "",
    changed: bool = False,
    on_data_loss: str = "fail",
    on_error: str | None = None,
    several: int = 0,
) -> Flow:
    """Plan pipeline `name` over the topics `<inputs>.<side>`.

    It writes the topic `<name>.out`, or the table `name` where there is a warehouse, or `several`
    outputs: the first of two topics, JSON and Avro, and of two tables. The second topic gets the
    payments, too, which drive a chain of their own. A plan that is
    `changed` does not fit the state of one that is not. Bad records are skipped where there is a
    table, unless `on_error` says otherwise: dead letters would be transactions of Kafka.
    """
    # the time a crash takes must not move the watermark
    patient = {
        "idle_timeout": "7d",
        "on_data_loss": on_data_loss,
        "on_error": on_error or ("skip" if warehouse else "dead_letter"),
    }
    query = (CHANGED if changed else QUERY).format(inputs)
    topic = {"topic": f"{name}.out", "format": "json", "key": "id"}
    into = {"partition": "hour", "interval": "100ms"}
    table = {"table": name, **into}
    paid = "SELECT id, n, amount FROM joined WHERE amount IS NOT NULL"
    alone = f'SELECT amount, n, amount FROM "{inputs}.payments"'
    few = "SELECT n, tier, id FROM joined WHERE n > '2'"
    outputs = [
        {"from": "joined", **topic},
        {
            "query": f"{paid} UNION ALL {alone}",
            "topic": f"{name}.paid",
            "format": "avro",
            "key": "n",
        },
        {"from": "joined", **table},
        {"query": few, "table": f"{name}.{FEW}", **into},
    ]
    written = (
        {"relations": {"joined": {"query": query}}, "outputs": outputs[:several]}
        if several
        else {"query": query, "output": table if warehouse else topic}
    )
    spec = {
        "name": name,
        **written,
        "dead_letters": {"topic": f"{name}.dead"},
        "emission": {"type": "smart", "require": ["tier"], "on_expiry": "emit"},
        "state": {"dimensions": [f"{inputs}.profiles"]},
        "topics": {f"{inputs}.{side}": patient for side in SIDES},
        "dimensions_first": False,
        "partitions": 2,
        "delivery": delivery,
    }
    schemas = {
        f"{inputs}.{side}": tuple(Column(column, "VARCHAR") for column in columns)
        for side, columns in SIDES.items()
    }
    config = Config(warehouse=warehouse) if warehouse else Config()
    plan = build_plan(PipelineSpec.model_validate(spec), config, schemas).plan
    return with_avro_ids(plan, {s.id: AVRO_ID for s in topic_sinks(plan) if s.avro_schema}, {})


def copy_plan(name: str, inputs: str, delivery: str = "exactly_once") -> Flow:
    """Plan pipeline `name`, which writes what is in `<inputs>.events` to `<name>.out`."""
    topic = f"{inputs}.events"
    spec = {
        "name": name,
        "query": f'SELECT e.id, e.n, e.text FROM "{topic}" e',
        "output": {"topic": f"{name}.out", "format": "json", "key": "id"},
        "dead_letters": {"topic": f"{name}.dead"},
        "partitions": 2,
        "delivery": delivery,
    }
    schemas = {topic: tuple(Column(column, "VARCHAR") for column in ("id", "n", "text"))}
    return build_plan(PipelineSpec.model_validate(spec), Config(), schemas).plan


def create_outputs(kafka: KafkaSettings, name: str, several: bool = False) -> None:
    """Create the topics that pipeline `name` writes."""
    for topic in ("out", "paid") if several else ("out",):
        create_topic(kafka, f"{name}.{topic}", 2)
    create_topic(kafka, f"{name}.dead", 1)


def delivered(
    kafka: KafkaSettings, name: str, log: BatchLog, warehouse: str = "", several: bool = False
) -> Delivered:
    """Return what pipeline `name` has done; of several outputs, each has its name before keys."""
    if several:
        found = {each: _topic_rows(kafka, f"{name}.{each}") for each in ("out", "paid")}
        if warehouse:
            found["table"] = _table_rows(Path(warehouse) / name)
            found[FEW] = _table_rows(Path(warehouse) / f"{name}.{FEW}")
        assert all(found.values())
        rows = {f"{at} ".encode() + k: v for at, of in found.items() for k, v in of.items()}
    elif warehouse:
        rows = _table_rows(Path(warehouse) / name)
    else:
        rows = _topic_rows(kafka, f"{name}.out")
    letters = sorted(read_committed(kafka, f"{name}.dead")["value"].to_pylist())
    commit = log.last_commit()
    return Delivered(rows, letters, dict(commit.counters) if commit else {})


def log_of(path: object, name: str) -> BatchLog:
    """Return the batch log of pipeline `name` in a state directory."""
    return BatchLog(LocalStore(path / name))


def _topic_rows(kafka: KafkaSettings, topic: str) -> dict[bytes, list[bytes | None]]:
    rows: dict[bytes, list[bytes | None]] = {}
    table = read_committed(kafka, topic)
    for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True):
        rows.setdefault(key, []).append(value)
    return rows


def _table_rows(folder: Path) -> dict[bytes, list[bytes]]:
    """A table has no order, so that of the values is as good as any."""
    rows: dict[bytes, list[bytes]] = {}
    for row in DeltaTable(folder).to_pyarrow_table().to_pylist():
        value = json.dumps(row, default=str, sort_keys=True).encode()
        rows.setdefault(row["id"].encode(), []).append(value)
    return {key: sorted(rows[key]) for key in sorted(rows)}


def _records(events: int) -> Iterator[tuple[str, bytes, bytes, int]]:
    for number in range(events):
        user, at = f"u{number * 7 % USERS}", START + number * STEP
        bad = number % 40 == 17
        yield "events", user.encode(), b"no json" if bad else _json(id=user, n=str(number)), at
        if number % 3 == 0:  # some before their event, some after it, some never
            paid = number + number * 7 % 41 - 20
            yield "payments", b"%d" % paid, _json(n=str(paid), amount=f"{paid}.50"), at
        if number % 6 == 0:  # each user gets a first profile late, and others after it
            known = f"u{number // 6 % KNOWN}"
            yield "profiles", known.encode(), _json(id=known, tier=f"t{number}"), at
        if number % 50 == 30:
            yield "profiles", b"u3", b"", at  # not JSON either


def _json(**members: str) -> bytes:
    return json.dumps(members).encode()

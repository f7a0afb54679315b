"""Sources that are no topics, on Spark and Kafka: each record once, whatever happens."""
# pyright: basic

import gzip
import json
import shutil
import threading
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.dead_letters.letters import letters_of
from kaflow_engine.connectors.kafka.dead_letters.redrive import can_redrive
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.outputs.connection_specs import IcebergConnection
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.bucket_here import KEYS, NAME, Store
from tests.acceptance.kills import peace_or
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import config_for
from tests.engine.connectors.iceberg_here import catalog_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

ROWS, FILES, USERS = 60, 5, 7
PLACES = peace_or(
    [("batch_logged", 2), ("mapped", 1), ("before_commit_log", 2), ("committed", 3)], 2
)


@pytest.fixture
def folder(tmp_path):
    """Files with rows, a broken one, and one that a writer has not renamed yet."""
    found = tmp_path / "in"
    found.mkdir()
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        rows = pa.table({"id": list(ids), "u": [f"u{n % USERS}" for n in ids]})
        pq.write_table(rows, found / f"{number}.parquet", row_group_size=25)
    (found / "2b.parquet").write_bytes(b"PAR1 and nothing else")
    whole = (found / "0.parquet").read_bytes()
    (found / ".7.parquet.tmp").write_bytes(whole[:50])
    return found


def spec_of(name, folder):
    return PipelineSpec.model_validate(
        {
            "name": name,
            "query": f"""
                SELECT c.id, u.name, r.rank
                FROM clicks c
                LEFT JOIN users u ON c.u = u.u
                LEFT JOIN "{name}.ranks" r ON c.u = r.u
            """,
            "state": {"dimensions": [f"{name}.ranks"]},
            "topics": {f"{name}.ranks": {"columns": {"u": "VARCHAR", "rank": "INTEGER"}}},
            "output": {"topic": f"{name}.out", "key": "id"},
            "sources": {
                "clicks": {
                    "type": "files",
                    "path": str(folder),
                    "columns": {"id": "BIGINT", "u": "VARCHAR"},
                    "settle": 0,
                },
                "users": {
                    "type": "generator",
                    "records": USERS,
                    "rate": 1000,
                    "start": "2026-01-01T00:00:00Z",
                    "values": {
                        "n": {"distribution": "sequence"},
                        "u": {"distribution": "sequence", "prefix": "u"},
                        "name": {"distribution": "sequence", "prefix": "name of "},
                    },
                    "table": True,
                    "primary_key": ["u"],
                },
            },
        }
    )


def send_ranks(broker, topic):
    """Send the records of a topic that the sources are joined with."""
    create_topic(broker.settings, topic, 2)
    producer = open_producer(broker.settings).api
    for n in range(USERS):
        producer.produce(topic, json.dumps({"u": f"u{n}", "rank": n * n}), f"u{n}")
    assert producer.flush(30) == 0


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_each_row_comes_once(broker, spark, folder, tmp_path, unique, place):
    from kaflow_engine.runtime.application import run_pipelines

    config = config_for(broker, tmp_path / "state", max_records=45)
    spec = spec_of(unique, folder)
    send_ranks(broker, f"{unique}.ranks")
    if place is not None:
        killed_at(*place, spec, config)
    (planned,) = prepare([spec], config)

    def run():
        summary = run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
        values = read_all(broker.settings, f"{unique}.out")["value"].to_pylist()
        return summary.pipelines[unique], [json.loads(value) for value in values]

    summary, rows = run()
    expected = [
        {"id": n, "name": f"name of {n % USERS}", "rank": (n % USERS) ** 2}
        for n in range(FILES * ROWS)
    ]
    assert Counter(map(str, rows)) == Counter(map(str, expected))
    letters = read_all(broker.settings, planned.plan.dead_letter_topic)
    assert letters.num_rows == summary.counters["dead_letter"] == 1
    assert not any(can_redrive(letter) for letter in letters_of(letters))
    headers = {h["key"]: h["value"].decode() for h in letters["headers"].to_pylist()[0]}
    assert headers["kaflow.from"] == str(folder / "2b.parquet")
    assert headers["kaflow.phase"] == "read"
    assert "2b.parquet cannot be read" in headers["kaflow.message"]

    (folder / ".7.parquet.tmp").write_bytes((folder / "0.parquet").read_bytes())
    (folder / ".7.parquet.tmp").rename(folder / "7.parquet")
    _, rows = run()  # the name says when it is whole, and the others are not read again
    again = Counter(map(str, [*expected, *expected[:ROWS]]))
    assert Counter(map(str, rows)) == again


def test_files_by_two_event_times_reach_a_topic_and_a_table(broker, spark, tmp_path, unique):
    from kaflow_engine.runtime.application import run_pipelines

    folder = tmp_path / "in"
    folder.mkdir()
    parcels = [{"sent": n * 1000, "arrived": n * 1000 + 60_000} for n in range(FILES * ROWS)]
    for number in range(FILES):
        some = parcels[number * ROWS : (number + 1) * ROWS]
        (folder / f"{number}.json").write_text("\n".join(map(json.dumps, some)))
    into = {"type": "iceberg", "table": f"{unique}.t", "create": True, "interval": "100ms"}
    minutes = "SELECT epoch_ms(window_start) AS since, count(*) AS n FROM {} GROUP BY tumble({})"
    spec = PipelineSpec.model_validate(
        {
            "name": unique,
            "relations": {"arrivals": {"topic": "parcels", "event_time": "arrived"}},
            "outputs": [
                {"query": minutes.format("arrivals", "INTERVAL 1 MINUTE"), "topic": f"{unique}.n"},
                {"query": "SELECT sent FROM parcels", "topic": f"{unique}.sent"},
                {"query": "SELECT sent, arrived FROM parcels", **into},
            ],
            "sources": {
                "parcels": {
                    "type": "files",
                    "path": str(folder),
                    "format": "json",
                    "columns": {"sent": "BIGINT", "arrived": "BIGINT"},
                    "event_time": "sent",
                    "settle": 0,
                }
            },
        }
    )
    catalog = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path / "lake")}
    lake = {"connections": {"default": catalog}}
    config = config_for(broker, tmp_path / "state", max_records=45, iceberg=lake)
    killed_at("before_commit_log", 3, spec, config)
    (planned,) = prepare([spec], config)
    summary = run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)

    counted = read_all(broker.settings, f"{unique}.n")["value"].to_pylist()
    closed = {minute * 60_000: ROWS for minute in range(1, FILES)}  # the last one is still open
    assert sorted((row["since"], row["n"]) for row in map(json.loads, counted)) == [*closed.items()]
    sent = read_all(broker.settings, f"{unique}.sent")
    assert set(sent["key"].to_pylist()) == {None}
    assert sorted(json.loads(value)["sent"] for value in sent["value"].to_pylist()) == [
        parcel["sent"] for parcel in parcels
    ]
    with catalog_of(IcebergConnection(**catalog), "default") as opened:
        rows = opened.load_table(f"{unique}.t").scan().to_arrow().to_pylist()
    assert sorted(rows, key=lambda row: row["sent"]) == parcels
    assert "dead_letter" not in summary.pipelines[unique].counters


def test_files_are_read_as_they_appear(broker, spark, tmp_path, unique):
    """CN7: each once, a half one when it has its name, a broken one as a dead letter."""
    from kaflow_engine.runtime.application import run_pipelines

    stop, folder, done = threading.Event(), tmp_path / "in", set()
    folder.mkdir()
    spec = PipelineSpec.model_validate(
        {
            "name": unique,
            "query": "SELECT id FROM clicks",
            "output": {"topic": f"{unique}.out", "key": "id"},
            "sources": {
                "clicks": {
                    "type": "files",
                    "path": str(folder),
                    "format": "json",
                    "columns": {"id": "BIGINT"},
                    "settle": 0,
                }
            },
        }
    )

    def write(name, ids):
        (folder / ".half").write_text("".join(f'{{"id":{n}}}\n' for n in ids))
        (folder / ".half").rename(folder / name)

    def go_on(progress):
        """Write the next file when the one before it was read, once."""
        if progress.state != "running" or progress.records in done:
            return
        done.add(progress.records)
        match progress.records:
            case 0:
                write("b", range(10))
            case 10:
                (folder / "c.gz").write_bytes(gzip.compress(b"{}" * 999)[:-20])
            case 11:
                write("a", range(10, 30))
            case 31:
                stop.set()

    config = config_for(broker, tmp_path / "state")
    (planned,) = prepare([spec], config)
    summary = run_pipelines([planned.plan], config, stop=stop, on_progress=go_on, spark=spark)
    assert summary.pipelines[unique].ending == "drained"
    values = read_all(broker.settings, f"{unique}.out")["value"].to_pylist()
    assert sorted(json.loads(value)["id"] for value in values) == list(range(30))
    (letter,) = letters_of(read_all(broker.settings, planned.plan.dead_letter_topic))
    assert f"{folder}/c.gz cannot be read: " in letter.message


def test_a_machine_is_lost_with_what_it_had_found(broker, spark, tmp_path, unique):
    """Files of a bucket: those of batches that no checkpoint covers are known by the batches."""
    from kaflow_engine.runtime.application import run_pipelines

    with Store() as store:
        objects = store.bucket("in")

        def put(name, first):
            lines = (json.dumps({"id": first + n}) for n in range(ROWS))
            objects.put(name, "\n".join(lines).encode(), None)

        keys = {"accessKey": KEYS["access_key"], "secretKey": KEYS["secret_key"]}
        s3 = {"enabled": True, "bucket": NAME, "endpoint": store.endpoint, **keys}
        s3 |= {"region": KEYS["region"]}

        def config(interval):
            rocksdb = {"path": str(tmp_path / "state"), "checkpoint": {"interval": interval}}
            rocksdb["checkpoint"]["s3"] = s3
            state = {"rocksdb": rocksdb}
            return config_for(broker, tmp_path / "state", max_records=45, state=state)

        spec = PipelineSpec.model_validate(
            {
                "name": unique,
                "query": "SELECT id, count(*) AS n FROM clicks GROUP BY id",
                "output": {"topic": f"{unique}.out", "key": "id"},
                "sources": {
                    "clicks": {
                        "type": "files",
                        "path": f"s3://{NAME}/in",
                        "format": "json",
                        "settle": 0,
                    }
                },
            }
        )
        put("m", 0)
        (planned,) = prepare([spec], config("1ms"))
        run_pipelines([planned.plan], config("1ms"), until_caught_up=True, spark=spark)
        put("x", ROWS)
        put("z", 2 * ROWS)
        killed_at("committed", "*", spec, config("1h"))
        shutil.rmtree(tmp_path / "state")
        put("a", 3 * ROWS)  # would be found first, if what was found were lost
        (planned,) = prepare([spec], config("1h"))
        run_pipelines([planned.plan], config("1h"), until_caught_up=True, spark=spark)
    values = read_all(broker.settings, f"{unique}.out")["value"].to_pylist()
    rows = Counter((row["id"], row["n"]) for row in map(json.loads, values))
    assert rows == Counter((n, 1) for n in range(4 * ROWS))

"""A history in files and the topic that goes on are one topic, wherever and however it is cut."""
# pyright: basic

import base64
import os
import random
import shutil
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.errors import KaflowError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.evolution.diff import change
from kaflow_engine.runtime.failures.error_wire import SECRET
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.archive import LAYOUTS, first_records, raw_parquet, remove
from tests.acceptance.kills import ALL
from tests.acceptance.run_child import killed_at
from tests.acceptance.test_backfill import by_key, halves
from tests.acceptance.three_days import DAY, SECOND, START, config_for, load, spec_of, topic_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

TOPICS = ("clicks", "views", "users")
SHARES = {"clicks": 0.6, "views": 0.5, "users": 0.8}
KILLS = int(os.environ.get("KAFLOW_HAND_OVER_KILLS", "3"))
SEED = int(os.environ.get("KAFLOW_KILLS_SEED", random.randrange(10**6)))
POINTS = ("batch_logged", "changes_written", "before_commit_log", "commit_logged")
"""Which every batch passes that reads something, whether or not it has rows to deliver."""
MOST = 90
"""Records of a batch: several before and after each hand-over."""


@pytest.fixture(scope="module")
def archives(broker, tmp_path_factory):
    """Whole topics; and such of which the first records are only in files."""
    load(broker, "whole")
    load(broker, "past")
    folder = tmp_path_factory.mktemp("archive")
    found = {layout: {} for layout in LAYOUTS}
    for topic in TOPICS:
        records = first_records(broker.settings, f"past.{topic}", SHARES[topic])
        for layout, write in LAYOUTS.items():
            found[layout][topic] = write(folder / layout / topic, records)
        remove(broker.settings, f"past.{topic}", records)
    return found


def with_history(spec, archive):
    """Return a pipeline whose topics begin in files."""
    said = spec.model_dump(by_alias=True, exclude_unset=True)
    for topic, how in said["topics"].items():
        how["history"] = archive[topic.removeprefix("past.")]
    return PipelineSpec.model_validate(said)


def run(spec, config, spark):
    from kaflow_engine.runtime.application import run_pipelines

    (planned,) = prepare([spec], config)
    summary = run_pipelines(
        [planned.plan], config, until_caught_up=True, change=change, spark=spark
    )
    return planned.plan, summary.pipelines[planned.plan.name]


@pytest.fixture(scope="module")
def whole(broker, spark, archives, tmp_path_factory):
    """What pipelines over whole topics write; one for each kind of side."""
    found = {}

    def rows_of(side):
        if side not in found:
            config = config_for(broker, tmp_path_factory.mktemp("whole"))
            plan, _ = run(spec_of(side, "whole", output="entire"), config, spark)
            found[side] = written(broker, plan)
        return found[side]

    return rows_of


def written(broker, plan):
    rows = read_all(broker.settings, topic_of(plan)).to_pylist()
    letters = read_all(broker.settings, plan.dead_letter_topic).to_pylist()
    rows = [(row["timestamp"], row["key"], row["value"]) for row in rows]
    if "inner" in plan.name:  # which of two matches comes first is up to the cuts
        rows.sort()
    return (
        by_key(rows),
        sorted((row["timestamp"], row["value"]) for row in letters),
    )


CASES = [
    ("dimension", "raw_parquet"),
    ("inner", "json_lines"),
    ("alone", "delta_columns"),
    *([("inner", "raw_parquet"), ("dimension", "delta_columns")] if ALL else []),
]
"""Each side and each layout once; `KAFLOW_KILLS=all` tries more of them together."""


@pytest.mark.parametrize(("side", "layout"), CASES)
def test_rows_are_those_of_whole_topics(broker, spark, archives, whole, tmp_path, side, layout):
    config = config_for(broker, tmp_path, max_records=MOST)
    spec = with_history(spec_of(side, "past", output=layout), archives[layout])
    plan, summary = run(spec, config, spark)
    rows, letters = written(broker, plan)
    expected, expected_letters = whole(side)
    assert rows == expected
    if layout != "delta_columns":  # a lake that has columns has no broken records
        assert letters == expected_letters
    assert summary.counters.get("lost", 0) == 0


def test_a_backfill_reads_files_too(broker, spark, archives, whole, tmp_path):
    from kaflow_engine.runtime.application import run_backfill

    config = config_for(broker, tmp_path, max_records=MOST)
    spec = with_history(spec_of("inner", "past", output="again"), archives["raw_parquet"])
    (planned,) = prepare([spec], config)
    run_backfill(planned.plan, config, replace(SECOND, force=True), spark=spark)
    _, again = halves(broker, topic_of(planned.plan))
    rows = [(at, k, v) for k, some in whole("inner")[0].items() for at, v in some]
    wanted = [row for row in rows if START + DAY <= row[0] < START + 2 * DAY]
    assert by_key(sorted(again)) == by_key(sorted(wanted))


def test_a_hand_over_is_killed(broker, spark, archives, whole, tmp_path):
    """Random steps of random batches; `KAFLOW_HAND_OVER_KILLS` asks for more of them."""
    sys.stdout.write(f"KAFLOW_KILLS_SEED={SEED}\n")
    chance = random.Random(SEED)
    config = config_for(broker, tmp_path / "state", max_records=MOST)
    spec = with_history(spec_of("inner", "past", output="killed"), archives["raw_parquet"])
    for batch in sorted(chance.sample(range(2, 8), min(KILLS, 6))):
        killed_at(chance.choice(POINTS), batch, spec, config)
    plan, _ = run(spec, config, spark)
    assert written(broker, plan) == whole("inner")


def test_a_gap_behind_the_files_is_refused_or_counted(broker, spark, archives, tmp_path):
    records = first_records(broker.settings, "whole.clicks", 0.6)
    earlier = {p: rows[: len(rows) // 2] for p, rows in records.items()}
    archive = {"clicks": raw_parquet(tmp_path / "files", earlier)}
    spec = with_history(spec_of("alone", "past", output="gap"), archive)
    gap = {p: len(records[p]) - 5 - len(rows) for p, rows in earlier.items()}
    with pytest.raises(KaflowError) as caught:
        run(spec, config_for(broker, tmp_path / "state"), spark)
    assert caught.value.message == (
        f"the history of topic 'past.clicks' ends at offset {len(earlier[0])} of partition 0, but "
        f"the first that the topic has is {len(records[0]) - 5}: {gap[0]} offsets are in neither"
    )
    said = spec.model_dump(by_alias=True, exclude_unset=True)
    said["topics"]["past.clicks"]["on_data_loss"] = "continue"
    config = config_for(broker, tmp_path / "state", max_records=MOST)
    plan, summary = run(PipelineSpec.model_validate(said), config, spark)
    assert summary.counters["lost"] == sum(gap.values())
    read = sum(len(rows) for rows in written(broker, plan)[0].values())
    assert read > sum(len(rows) for rows in earlier.values()) / 2


TYPED = {
    "n": ("DECIMAL(20,2)", Decimal("12345678901234567.89"), '"n":12345678901234567.89'),
    "big": ("BIGINT", 9007199254740993, '"big":9007199254740993'),
    "at": ("TIMESTAMP", datetime(2026, 1, 2, 3, 4, 5, 6), '"at":"2026-01-02T03:04:05.000006Z"'),
    "d": ("DATE", date(2026, 1, 2), '"d":"2026-01-02"'),
    "ok": ("BOOLEAN", True, '"ok":true'),
    "s": (
        "STRUCT(a INTEGER, b VARCHAR[])",
        {"a": 1, "b": ["x", None]},
        '"s":{"a":1,"b":["x",null]}',
    ),
    "nil": ("VARCHAR", None, '"nil":null'),
}


def test_columns_keep_their_values(broker, spark, unique, tmp_path):
    broker.create_topic(unique, 1)
    row = {name: value for name, (_, value, _) in TYPED.items()}
    place = {"partition": 0, "offset": 0, "timestamp": datetime(2026, 1, 1, tzinfo=UTC)}
    schema_of_nil = pa.table({"nil": pa.array([None], pa.string())})
    table = pa.Table.from_pylist([place | row]).drop(["nil"])
    pq.write_table(table.append_column("nil", schema_of_nil["nil"]), tmp_path / "one.parquet")
    producer = open_producer(broker.settings).api
    producer.produce(unique, b"{}", None, 0)
    assert producer.flush(30) == 0
    spec = PipelineSpec.model_validate(
        {
            "name": unique,
            "query": f'SELECT {", ".join(TYPED)} FROM "{unique}"',
            "output": {"topic": f"{unique}.rows"},
            "topics": {
                unique: {
                    "columns": {name: kind for name, (kind, *_) in TYPED.items()},
                    "history": {"path": str(tmp_path / "one.parquet")},
                }
            },
        }
    )
    run(spec, config_for(broker, tmp_path / "state"), spark)
    first, *_ = read_all(broker.settings, f"{unique}.rows")["value"].to_pylist()
    assert first.decode() == "{" + ",".join(text for *_, text in TYPED.values()) + "}"


def test_a_state_that_began_without_files_goes_on_without_them(
    broker, spark, archives, tmp_path, caplog
):
    config = config_for(broker, tmp_path)
    spec = spec_of("alone", "past", output="later")
    _, before = run(spec, config, spark)
    _, after = run(with_history(spec, archives["raw_parquet"]), config, spark)
    assert after.counters == before.counters
    assert "the history of topic 'past.clicks' is not read: the state of pipeline" in caplog.text


MISTAKES = [
    ({"path": "/nowhere"}, "at /nowhere holds no parquet files"),
    ({"offset": "ofset"}, "has no column 'ofset'"),
    ({"value": None}, "has a column 'value' of bytes"),
    ({"format": "json", "value": None}, "have no 'partition'"),
    ({"format": "delta"}, "is no Delta table"),
]


@pytest.mark.parametrize(("change", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_files_that_are_something_else(broker, spark, archives, tmp_path, change, words):
    archive = {"clicks": archives["raw_parquet"]["clicks"] | change}
    spec = with_history(spec_of("alone", "past", output="wrong"), archive)
    with pytest.raises(KaflowError, match=words):
        run(spec, config_for(broker, tmp_path), spark)


@pytest.mark.parametrize("mark", ["", f"{SECRET}:"], ids=["unmarked", "marked"])
def test_a_broken_file_whose_name_is_code_runs_nothing(broker, spark, archives, tmp_path, mark):
    goal, coded = tmp_path / "ran", "/"
    while "/" in coded:  # which no name of a file may have
        pickled = f"cposix\nsystem\n(S'touch {goal} #{'x' * random.randrange(3, 9)}'\ntR."
        coded = base64.b64encode(pickled.encode()).decode()
    folder = tmp_path / "lake"
    shutil.copytree(Path(archives["raw_parquet"]["clicks"]["path"]).parent, folder)
    (folder / f"<<kaflow:{mark}{coded}>>.parquet").write_bytes(b"PAR1 this is none PAR1")
    archive = {"clicks": {"path": str(folder), "value": "value"}}
    spec = with_history(spec_of("alone", "past", output="forged"), archive)
    with pytest.raises(KaflowError) as raised:
        run(spec, config_for(broker, tmp_path / "state"), spark)
    assert coded in f"{raised.value}{getattr(raised.value, 'details', '')}"
    assert not goal.exists()


def test_files_of_another_topic_and_files_that_change(broker, spark, archives, tmp_path):
    config = config_for(broker, tmp_path / "state", max_records=MOST)
    spec = with_history(spec_of("alone", "past", output="other"), archives["raw_parquet"])
    said = spec.model_dump(by_alias=True, exclude_unset=True)
    said["topics"]["past.users"] = said["topics"].pop("past.clicks")
    said |= {"id": "of_users", "query": said["query"].replace("clicks", "users")}
    with pytest.raises(KaflowError, match="but the topic ends at"):
        run(PipelineSpec.model_validate(said), config, spark)

    from kaflow_engine.runtime.application import run_pipelines

    folder = tmp_path / "moved"
    shutil.copytree(Path(archives["raw_parquet"]["clicks"]["path"]).parent, folder)
    archive = {"clicks": {"path": str(folder), "value": "value"}}
    (planned,) = prepare([with_history(spec_of("alone", "past", output="moved"), archive)], config)
    run_pipelines([planned.plan], config, max_records=1, until_caught_up=True, spark=spark)
    (folder / "c.parquet").rename(folder / "d.parquet")
    with pytest.raises(KaflowError, match=r"has changed: .*/c.parquet is gone"):
        run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)

"""Events that leave when they match are the rows that DuckDB joins of all records at once.

Disorder stays within `lateness`, so that nothing is late: then the rows, and their times, are the
same in any batches, with replays, crashes and several tasks. A case is a seed, as in
`test_against_oracle`.
"""

# pyright: basic

import json
from collections import Counter
from typing import Any

import duckdb
import pytest

from kaflow_engine.errors import Location
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.property.dice import Dice
from tests.property.executor import How, _table, crashes
from tests.property.seeds import blocks, many
from tests.reference.records import Record

pytestmark = pytest.mark.slow

FAST, MANY = 10, 60
COLUMNS = {"k": "VARCHAR", "v": "INTEGER"}
SIDES = ("lefts", "rights", "others")
SECOND = 1_000
START = 1_767_225_600_000
DISORDER = 10


def draw_records(dice: Dice) -> list[Record]:
    """Choose records of both topics, in the order in which they are read."""
    places = Counter[str]()
    found: list[Record] = []
    now = START
    for number in range(dice.number(1, 30)):
        now += dice.pick([0, 1, 5, 20]) * SECOND
        topic = dice.pick(SIDES)
        value = {"k": dice.pick(["a", "a", "b", "c", None]), "v": number}
        at = now - dice.number(0, DISORDER) * SECOND
        found.append(Record(topic=topic, offset=places[topic], ts=at, value=value))
        places[topic] += 1
    return found


def expected(
    sql: str, time: str, records: list[Record], names: list[str]
) -> list[tuple[int, dict[str, Any]]]:
    """Ask DuckDB over all records at once."""
    with duckdb.connect() as connection:
        for topic in SIDES:
            connection.execute(f"CREATE TABLE {topic} (k VARCHAR, v INTEGER, ts BIGINT)")
        for record in records:
            assert record.value is not None
            row = [record.value["k"], record.value["v"], record.ts]
            connection.execute(f"INSERT INTO {record.topic} VALUES (?, ?, ?)", row)
        rows = connection.execute(sql.replace("SELECT ", f"SELECT {time} AS at, ")).fetchall()
    return [(at, dict(zip(names, values, strict=True))) for at, *values in rows]


def check(seed: int) -> None:
    """Compare the two."""
    dice, how = Dice(f"matches {seed}"), How.of(f"matches {seed}")
    kind = dice.pick(["INNER", "LEFT", "RIGHT", "FULL", "FULL"])
    before, after, apart = (dice.pick([0, 2, 15, 60]) * SECOND for _ in "abc")
    where = dice.pick(["", "", " WHERE l.v IS NULL OR r.v IS NULL", " WHERE l.v > 3"])
    latest, grouped = dice.one_in(2), dice.one_in(3)
    third = dice.pick(["", "LEFT", "INNER"]) if kind in ("INNER", "LEFT") else ""
    columns = {
        "lk": "l.k",
        "lv": "l.v",
        "rk": "r.k",
        "rv": "r.v",
        **({"ov": "o.v"} if third else {}),
    }
    if grouped:
        key = "l.v % 3" if kind == "LEFT" else "coalesce(l.v, r.v) % 3"
        columns = {"g": key, "n": "count(*)", "l": "sum(l.v)", "r": "list(r.v ORDER BY r.v)"}
    shown = ", ".join(f"{of} AS {name}" for name, of in columns.items())
    sql = f"SELECT {shown} FROM lefts l {kind} JOIN rights r ON l.k = r.k"
    more = f" {third} JOIN others o ON l.k = o.k" if third else ""
    behind = f"{where} GROUP BY {key}" if grouped else where
    topic = {"columns": COLUMNS, "lateness": f"{DISORDER}s", "idle_timeout": "1d"}
    author = {
        "name": "matches",
        "query": f"{sql}{more}{behind}",
        "output": {"topic": "out"},
        "emission": {"type": "on_match"},
        "within": {
            "before": f"{before}ms",
            "after": f"{after}ms",
            "grace": f"{dice.pick([0, 0, 7])}s",
            "joins": {"o": f"{apart}ms"} if third else {},
        },
        "row_time": "latest" if latest else "driving",
        "topics": dict.fromkeys(SIDES if third else SIDES[:2], topic),
        "partitions": 2,
    }
    records = [each for each in draw_records(dice) if each.topic in author["topics"]]
    got = run(author, records, dice, how)
    near = f"r.ts BETWEEN l.ts - {before} AND l.ts + {after}"
    other_near = f" AND o.ts BETWEEN l.ts - {apart} AND l.ts + {apart}" if third else ""
    times = ["r.ts", "l.ts"] if kind == "RIGHT" else ["l.ts", "r.ts"]
    time = f"coalesce({', '.join(times)})"
    if latest:
        time = f"greatest({', '.join([*times, *(['o.ts'] if third else [])])})"
    time = f"max({time})" if grouped else time
    asked = f"{sql} AND {near}{more}{other_near}{behind}"
    want = expected(asked, time, records, [*columns])
    if grouped:
        got = [*{row["g"]: (at, row) for at, row in got}.values()]
    assert _sorted(got) == _sorted(want), f"seed {seed}: {author}"


def run(
    author: dict[str, Any], records: list[Record], dice: Dice, how: How
) -> list[tuple[int, dict[str, Any]]]:
    """Run a pipeline over records, in batches."""
    spec = pipeline_from_mapping(author, Location("<random>"))
    read = author["topics"]
    columns = {name: declared_columns(spec, name) or () for name in read}
    plan = build_plan(spec, Config(), columns).plan
    running = LocalPipeline(
        plan,
        dict.fromkeys(read, range(1)),
        spread=how.spread,
        replay=how.replay,
        point=crashes(how.crashes),
    )
    rows: list[dict[str, Any]] = []
    rest, now = list(records), START
    while rest:
        size = dice.number(1, 8)
        batch, rest = tuple(rest[:size]), rest[size:]
        now = max(now, *(record.ts for record in batch))
        rows += running.run(_table(batch), now).output.to_pylist()
    rows += running.end(now).output.to_pylist()
    counted = running.counters
    classes = ("used", "emitted", "filtered", "expired", "waiting", "dead_letter", "skipped")
    assert counted["read"] == sum(counted.get(name, 0) for name in classes)
    assert counted["waiting"] == counted["late"] == 0
    return [(row["timestamp"], json.loads(row["value"])) for row in rows]


def _sorted(rows: list[tuple[int, dict[str, Any]]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_are_those_of_duckdb(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_are_those_of_duckdb(seeds: range) -> None:
    for seed in seeds:
        check(seed)

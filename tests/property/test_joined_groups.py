"""Random joins of groups and tables, and outputs that are added over them while they run.

After each record the outputs hold what DuckDB gives for the same SQL over all records of the topic
of events, and over the tables as they are; a record makes at most one update of each key. Then the
same with other cuts, replays and crashes, and with an output that is added on the way: in the end
it holds the same as one that was there from the beginning.
"""

# pyright: basic

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.evolution.diff import obstacles
from kaflow_engine.plan.evolution.evolution import inherit
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.runtime.planning.plan_codec import plan_of, plan_text
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.property.dice import Dice
from tests.property.executor import How, _table, crashes
from tests.property.seeds import blocks, many
from tests.reference.records import Record

pytestmark = pytest.mark.slow

FAST, MANY = 4, 12
START = 1_767_225_600_000
COLUMNS = {
    "e": {"k": "VARCHAR", "g": "INTEGER", "n": "INTEGER"},
    "m": {"id": "VARCHAR", "g": "INTEGER", "n": "INTEGER"},
}
SIDES = {
    "totals": "SELECT k, sum(n) AS s, count(*) AS c, 1 AS one FROM e GROUP BY k",
    "few": "SELECT k, max(n) AS s, coalesce(sum(n), 0) AS c, 2 AS one FROM e GROUP BY k "
    "HAVING count(*) < 3",
    "by_g": "SELECT g AS k, count(*) AS s, min(n) AS c, 3 AS one FROM e GROUP BY g",
    "two": "SELECT k, g, sum(n) AS s, count(n) AS c, 4 AS one FROM e GROUP BY k, g",
    "of_m": "SELECT g AS k, count(*) AS s, sum(n) AS c, 5 AS one FROM m GROUP BY g",
    "rows": "SELECT id AS k, g AS s, n AS c, 6 AS one FROM m",
    "good": "SELECT id AS k, g AS s, n AS c, 7 AS one FROM m WHERE n > 1",
}
KEYS = {"totals": "k", "few": "k", "by_g": "g", "two": "k, g", "of_m": "g"}
"""What those that are groups are grouped by."""
KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
Table = Counter[str]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pipeline, and its records in their order."""

    author: Mapping[str, Any]
    records: Sequence[Record]


def random_case(seed: int) -> Case:
    """Draw one case."""
    dice = Dice(f"joined groups {seed}")
    left, right = dice.pick(list(SIDES)), dice.pick(list(SIDES))
    while {left, right} <= {"rows", "good"}:
        left, right = dice.pick(list(SIDES)), dice.pick(list(SIDES))
    on = dice.pick(["l.k = r.k", "l.k = r.k", "l.s = r.s", "l.s = r.c", "l.k = r.k AND l.s = r.s"])
    if "by_g" in (left, right) or "of_m" in (left, right):
        on = on.replace("l.k = r.k", "CAST(l.k AS VARCHAR) = CAST(r.k AS VARCHAR)")
    where = dice.pick(["", "", " WHERE l.c > 1", " WHERE r.s IS NULL OR l.s IS NULL"])
    chosen = "l.k AS lk, r.k AS rk, l.s + 1 AS ls, r.c AS rc, l.one AS a, r.one + 1 AS b"
    kind = dice.pick(KINDS)
    joined = f"SELECT {chosen} FROM {left} l {kind} {right} r ON {on}{where}"
    relations = {name: {"query": sql} for name, sql in SIDES.items() if name in (left, right)}
    if kind == "FULL JOIN" and left in KEYS:
        relations[left] = {"query": _without_null(relations[left]["query"], KEYS[left])}
    outputs = [
        {"from": "joined", "topic": "o", "coalesce": dice.pick(["none", "batch"])},
        dice.pick(
            [
                {"query": "SELECT lk, count(*) AS n, sum(rc) AS s FROM joined GROUP BY lk"},
                {"query": "SELECT count(*) AS n, max(b) AS m FROM joined"},
                {"query": "SELECT ls, rc, a FROM joined WHERE rc IS NOT NULL"},
            ]
        )
        | {"topic": "p", "coalesce": dice.pick(["none", "batch"])},
    ]
    author = {
        "name": "p",
        "relations": {**relations, "joined": {"query": joined}},
        "outputs": outputs,
        "topics": {"m": {"table": True, "primary_key": ["id"]}},
        "partitions": dice.pick([1, 3]),
    }
    read = f"{SIDES[left]} {SIDES[right]}"
    topics = [topic for topic in COLUMNS if f"FROM {topic}" in read]
    author["topics"] = {name: spec for name, spec in author["topics"].items() if name in topics}
    records = []
    for number in range(dice.number(6, 14)):
        topic = dice.pick(topics)
        key = dice.pick(["1", "2", "3"])
        value = {"g": dice.pick([1, 2, None]), "n": dice.pick([1, 2, 3, None])}
        value[next(iter(COLUMNS[topic]))] = None if topic == "e" and dice.one_in(6) else key
        gone = topic == "m" and dice.one_in(4)
        records.append(
            Record(
                topic=topic,
                offset=number,
                ts=START + 1000 * number,
                key=key,
                value=None if gone else value,
            )
        )
    return Case(author=author, records=records)


def _without_null(sql: str, keys: str) -> str:
    """Leave out the groups of NULL, which a FULL JOIN wants of one side."""
    asked = " AND ".join(f"{key} IS NOT NULL" for key in keys.split(", "))
    return sql.replace(" GROUP BY", f" WHERE {asked} GROUP BY")


def plan_for(author: Mapping[str, Any]) -> Flow:
    """Return the plan of a file."""
    schemas = {
        name: tuple(Column(column, kind) for column, kind in columns.items())
        for name, columns in COLUMNS.items()
    }
    return build_plan(pipeline_from_mapping(dict(author), Location("p")), Config(), schemas).plan


def wanted(case: Case, records: Sequence[Record], place: int) -> Table:
    """Ask DuckDB for what an output holds after records."""
    tables: dict[str, list[Mapping[str, Any]]] = {"e": []}
    rows: dict[str | None, Mapping[str, Any] | None] = {}
    for record in records:
        if record.topic == "e":
            tables["e"].append(record.value or {})
        else:
            rows[record.key] = record.value
    tables["m"] = [row for row in rows.values() if row is not None]
    with duckdb.connect() as connection:
        for name, columns in COLUMNS.items():
            listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            connection.execute(f"CREATE TABLE {name} ({listed})")
            for row in tables[name]:
                marks = ", ".join("?" * len(columns))
                values = [row.get(column) for column in columns]
                connection.execute(f"INSERT INTO {name} VALUES ({marks})", values)
        for name, relation in case.author["relations"].items():
            connection.execute(f"CREATE VIEW {name} AS {relation['query']}")
        output = case.author["outputs"][place]
        query = output.get("query") or f"SELECT * FROM {output['from']}"
        found = connection.sql(f"SELECT to_json(r) FROM ({query}) r").fetchall()
    return Counter(_text(json.loads(text)) for (text,) in found)


def _text(row: object) -> str:
    return json.dumps(row, sort_keys=True)


class Held:
    """What the topics of outputs hold."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[bytes, str]] = {"o": {}, "p": {}}

    def take(self, output: Any) -> Counter[tuple[str, bytes]]:
        """Take the rows of a batch; returns how many updates each key has."""
        found: Counter[tuple[str, bytes]] = Counter()
        for row in output.to_pylist():
            assert row["kind"] == 0, row
            found[row["topic"], row["key"]] += 1
            if row["value"] is None:
                del self.rows[row["topic"]][row["key"]]
            else:
                self.rows[row["topic"]][row["key"]] = _text(json.loads(row["value"]))
        return found

    def table(self, topic: str) -> Table:
        """Return the rows of a topic."""
        return Counter(self.rows[topic].values())


def _lacks_rows(case: Case, records: Sequence[Record], place: int) -> bool:
    """Tell whether the only group is not there yet: it begins with its first row."""
    query = case.author["outputs"][place].get("query", "")
    return "GROUP BY" not in query and "count(*)" in query


def check(seed: int) -> None:
    """Compare after each record, then with other cuts and an output that comes later."""
    case = random_case(seed)
    try:
        plan = plan_for(case.author)
    except SqlError as error:
        if "FULL JOIN of groups by other columns" not in error.message:
            raise
        return
    pipeline = LocalPipeline(plan, dict.fromkeys(COLUMNS, range(1)), replay=True)
    held = Held()
    for number, record in enumerate(case.records, 1):
        done = pipeline.run(_table((record,)), record.ts)
        updates = held.take(done.output)
        assert all(count == 1 for count in updates.values()), (seed, number, updates)
        for place, topic in enumerate("op"):
            want = wanted(case, case.records[:number], place)
            if not held.table(topic) and _lacks_rows(case, case.records, place):
                continue
            assert held.table(topic) == want, (seed, number, topic, case)
    _with_an_output_added(case, plan, held, seed)


def _with_an_output_added(case: Case, plan: Flow, whole: Held, seed: int) -> None:
    dice, how = Dice(f"added {seed}"), How.of(f"added {seed}")
    before = plan_for({**case.author, "outputs": case.author["outputs"][:1]})
    added = dice.number(0, len(case.records))
    pipeline = LocalPipeline(
        before,
        dict.fromkeys(COLUMNS, range(1)),
        spread=how.spread,
        replay=how.replay,
        point=crashes(how.crashes),
    )
    held, at, later = Held(), 0, False
    while at < len(case.records) or not later:
        if at >= added and not later:
            later = True
            if obstacles(before, plan):
                return
            pipeline.go_on(plan_of(plan_text(inherit(before, plan))))
        end = min(at + dice.number(0, 3), len(case.records) if later else added)
        records = tuple(case.records[at:end])
        held.take(pipeline.run(_table(records), START + 1000 * end).output)
        at = end
    held.take(pipeline.run(_table(()), START + 1000 * (end + 1)).output)
    for place, topic in enumerate("op"):
        if held.table(topic) or not _lacks_rows(case, case.records, place):
            assert held.table(topic) == whole.table(topic), (seed, topic, added, case)


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_joined_groups_are_what_duckdb_gives(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_joined_groups_are_what_duckdb_gives(seeds: range) -> None:
    for seed in seeds:
        check(seed)

"""Rows of windows and of DISTINCT that look something up are those of DuckDB over all records.

What they look up is read first, and does not change. A case is a seed, as in
`test_against_oracle`.
"""

# pyright: basic

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest

from tests.property.dice import Dice
from tests.property.executor import How
from tests.property.one_topic import OneTopic
from tests.property.seeds import blocks, many
from tests.property.strategies import T0
from tests.reference.records import Record

pytestmark = pytest.mark.slow

FAST, MANY = 10, 90
LATENESS = 20_000
COLUMNS = {"k": "VARCHAR", "g": "INTEGER", "v": "INTEGER"}
USERS = {"name": "VARCHAR", "city": "INTEGER"}
CITIES = {"id": "INTEGER", "land": "VARCHAR"}
TUMBLE = "tumble(INTERVAL 10 SECONDS)"
BELOW = (
    f"SELECT k, window_start AS since, count(*) AS n, sum(v) AS s FROM t GROUP BY k, {TUMBLE}",
    "SELECT k, window_start AS since, max(g) AS n, sum(v) AS s FROM t "
    f"GROUP BY k, {TUMBLE} HAVING count(*) > 1",
    "SELECT min(k) AS k, window_start AS since, g AS n, count(v) AS s FROM t "
    f"WHERE v > 1 GROUP BY g, {TUMBLE}",
    "SELECT DISTINCT k, g AS n, v AS s, NULL::TIMESTAMP AS since FROM t",
)
JOINS = (
    "LEFT JOIN u ON b.k = u._key",
    "JOIN u ON b.k = u._key",
    "JOIN u ON b.n = u.city",
    "LEFT JOIN u ON b.k = u._key LEFT JOIN c ON u.city = c.id",
    "LEFT JOIN u ON b.k = u._key JOIN c ON b.n = c.id",
    "LEFT JOIN c ON b.n = c.id LEFT JOIN u ON b.k = u._key AND b.n = u.city",
)
ABOVE = (
    "SELECT * FROM j",
    "SELECT name, count(*) AS n, sum(s) AS s FROM j GROUP BY name",
    "SELECT name, land, count(DISTINCT k) AS n FROM j WHERE n > 1 GROUP BY name, land",
    "SELECT DISTINCT name, land FROM j",
)
_WHERE = ("", "", " WHERE u.name IS NOT NULL OR b.n > 1", " WHERE b.s > 1")


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A flow of three queries."""

    below: str
    joined: str
    above: str

    @property
    def joined_topics(self) -> tuple[str, ...]:
        """Those that are looked up."""
        return tuple(topic for topic in ("u", "c") if f" {topic} ON " in self.joined)

    def pipeline(self, *, cities_are_a_table: bool) -> dict[str, Any]:
        """Write the pipeline."""
        cities: dict[str, Any] = {"columns": CITIES}
        if cities_are_a_table:
            cities |= {"table": True, "primary_key": ["id"]}
        topics = {"u": {"columns": USERS, "table": True}, "c": cities}
        made: dict[str, Any] = {
            "name": "random",
            "relations": {"b": {"query": self.below}, "j": {"query": self.joined}},
            "query": self.above,
            "output": {"topic": "out", "format": "json"},
            "topics": {
                "t": {"columns": COLUMNS, "lateness": f"{LATENESS}ms"},
                **{topic: topics[topic] for topic in self.joined_topics},
            },
            "partitions": 2,
        }
        if " JOIN " in self.joined.replace("LEFT JOIN", ""):
            made["within"] = "0s"
        if "c" in self.joined_topics and not cities_are_a_table:
            made["state"] = {"dimensions": ["c"]}
        return made


def draw(dice: Dice) -> Drawn:
    """Choose a flow."""
    join = dice.pick(JOINS)
    names = {
        "name": "u.name" if " u " in join else "NULL::VARCHAR",
        "land": "c.land" if " c " in join else "NULL::VARCHAR",
    }
    where = dice.pick(_WHERE) if " u " in join else ""
    selected = ", ".join(f"{sql} AS {name}" for name, sql in names.items())
    return Drawn(
        below=dice.pick(BELOW),
        joined=f"SELECT b.k, b.n, b.s, {selected} FROM b {join}{where}",
        above=dice.pick(ABOVE),
    )


def drawn_records(dice: Dice) -> dict[str, list[Record]]:
    """Choose records by topic; those of `t` are out of order by less than the lateness."""
    users = [
        {"name": dice.pick(["Ann", "Bob", None]), "city": dice.pick([1, 2, None])}
        for _ in range(dice.number(0, 4))
    ]
    cities = [{"id": n, "land": dice.pick(["NL", "BE", None])} for n in range(dice.number(0, 3))]
    at, values = 0, list[Record]()
    for n in range(dice.number(1, 30)):
        at += dice.pick([0, 1, 500, 2_000, 5_000, 20_000])
        value = {
            "k": dice.pick(["0", "0", "1", "2", None]),
            "g": dice.pick([0, 1, 2, None]),
            "v": dice.pick([1, 2, 3, None]),
        }
        ts = T0 + max(0, at - dice.pick([0, 0, 1, 3_000, LATENESS]))
        values.append(Record(topic="t", offset=n, ts=ts, value=value))
    return {
        "u": [
            Record(topic="u", offset=n, ts=T0, key=str(n), value=value)
            for n, value in enumerate(users)
        ],
        "c": [Record(topic="c", offset=n, ts=T0, value=value) for n, value in enumerate(cities)],
        "t": values,
    }


def expected(drawn: Drawn, records: Mapping[str, Sequence[Record]]) -> list[Any]:
    """Ask DuckDB over all records at once."""
    below = drawn.below.replace(TUMBLE, "since").replace("window_start AS since", "since")
    kinds = {"t": {**COLUMNS, "since": "BIGINT"}, "u": {"_key": "VARCHAR", **USERS}, "c": CITIES}
    with duckdb.connect() as connection:
        for topic, columns in kinds.items():
            declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            connection.execute(f"CREATE TABLE {topic} ({declared})")
            for record in records[topic]:
                assert record.value is not None
                known = {**record.value, "_key": record.key}
                known["since"] = record.ts - record.ts % 10_000
                places = ", ".join("?" * len(columns))
                values = [known[name] for name in columns]
                connection.execute(f"INSERT INTO {topic} VALUES ({places})", values)
        connection.execute(f"CREATE VIEW b AS {below}")
        connection.execute(f"CREATE VIEW j AS {drawn.joined}")
        found = connection.sql(f"SELECT to_json(r) AS row FROM ({drawn.above}) r").fetchall()
    return [json.loads(row) for (row,) in found]


def check(seed: int) -> None:
    """Compare the two."""
    dice = Dice(f"rows look up {seed}")
    drawn, records = draw(dice), drawn_records(dice)
    author = drawn.pipeline(cities_are_a_table=dice.one_in(2))
    schemas = {topic: {"u": USERS, "c": CITIES}[topic] for topic in drawn.joined_topics}
    run = OneTopic(author, COLUMNS, How.of(f"rows look up {seed}"), **schemas)
    run.take([each for topic in drawn.joined_topics for each in records[topic]], dice, 9)
    run.take(records["t"], dice, 6)
    run.end(T0 + 3_600_000)
    rows = run.rows
    if "GROUP BY" in drawn.above:
        rows = list({row["key"]: row for row in rows}.values())
    got = [json.loads(row["value"]) for row in rows]
    want = expected(drawn, records)
    assert sorted(map(str, got)) == sorted(map(str, want)), f"seed {seed}: {author}"


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_are_those_of_the_twin(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_are_those_of_the_twin(seeds: range) -> None:
    for seed in seeds:
        check(seed)

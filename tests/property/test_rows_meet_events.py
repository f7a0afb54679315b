"""Rows of windows and of DISTINCT that are joined to events, or to each other, are those that
DuckDB joins of all records at once.

Disorder stays within `lateness`, so that nothing is late: then the rows, and their times, are the
same in any batches, with replays, crashes and several tasks. A case is a seed, as in
`test_against_oracle`.
"""

# pyright: basic

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest

from tests.property.dice import Dice
from tests.property.executor import How
from tests.property.seeds import blocks, many
from tests.property.test_matches import COLUMNS, SECOND, draw_records, run
from tests.reference.records import Record

pytestmark = pytest.mark.slow

FAST, MANY = 4, 14
SIDES = ("lefts", "rights")
WINDOWS = {
    "tumble(INTERVAL 10 SECOND)": "SELECT *, ts // 10000 * 10000 AS since FROM {of}",
    "hop(INTERVAL 10 SECOND, INTERVAL 5 SECOND)": (
        "SELECT *, ts // 5000 * 5000 - unnest([0, 5000]) AS since FROM {of}"
    ),
    "session(INTERVAL 4 SECOND)": (
        "SELECT *, min(ts) OVER (PARTITION BY g, visit) AS since FROM (SELECT *, sum(new) OVER "
        "(PARTITION BY g ORDER BY ts, v) AS visit FROM (SELECT *, coalesce(ts - lag(ts) OVER "
        "(PARTITION BY g ORDER BY ts, v) > 4000, TRUE)::INTEGER AS new "
        "FROM (SELECT *, {key} AS g FROM {of})))"
    ),
}
"""Each with SQL of its rows and their windows."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """One side of a join: what its relation says, and what DuckDB says over all records."""

    query: str | None
    """None: it is the topic itself."""
    twin: str


def draw_side(dice: Dice, topic: str) -> Made:
    """Choose a side, with columns k, v and, in the twin, ts."""
    way = dice.pick(["topic", "distinct", "window", "window", "window"])
    if way == "topic":
        return Made(query=None, twin=f"SELECT k, v, ts FROM {topic}")
    if way == "distinct":
        first = "row_number() OVER (PARTITION BY k, v % 3 ORDER BY nr) = 1"
        return Made(
            query=f"SELECT DISTINCT k, v % 3 AS v FROM {topic}",
            twin=f"SELECT k, v % 3 AS v, ts FROM {topic} QUALIFY {first}",
        )
    window, key = dice.pick(list(WINDOWS)), dice.pick(["k", "k, v % 2"])
    having = dice.pick(["", "", " HAVING count(*) > 1"])
    one_key = key if key == "k" else "[k, (v % 2)::VARCHAR]"
    rows = WINDOWS[window].format(of=topic, key=one_key)
    return Made(
        query=f"SELECT k, sum(v)::INTEGER AS v FROM {topic} GROUP BY {key}, {window}{having}",
        twin=f"SELECT k, sum(v)::INTEGER AS v, max(ts) AS ts FROM ({rows}) "
        f"GROUP BY {key}, since{having}",
    )


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A join of two sides, and what groups it."""

    kind: str
    left: Made
    right: Made
    before: int
    after: int
    grace: int
    latest: bool
    above: bool
    """Its rows are counted in windows."""

    @property
    def select(self) -> str:
        """The join, without what must be near."""
        return (
            "SELECT l.k AS lk, l.v AS lv, r.k AS rk, r.v AS rv "
            f"FROM l {self.kind} JOIN r ON l.k = r.k"
        )

    @property
    def time(self) -> str:
        """The event time of a joined row."""
        driving, other = ("r.ts", "l.ts") if self.kind == "RIGHT" else ("l.ts", "r.ts")
        return "greatest(l.ts, r.ts)" if self.latest else f"coalesce({driving}, {other})"

    def pipeline(self) -> dict[str, Any]:
        """Write the pipeline."""
        sides = {"l": (self.left, SIDES[0]), "r": (self.right, SIDES[1])}
        queries = {name: side.query or f"SELECT * FROM {of}" for name, (side, of) in sides.items()}
        relations: dict[str, Any] = {name: {"query": sql} for name, sql in queries.items()}
        relations["j"] = {"query": self.select}
        grouped = "SELECT lk, count(rv) AS n FROM j GROUP BY lk, tumble(INTERVAL 20 SECOND)"
        topic = {"columns": COLUMNS, "lateness": "10s", "idle_timeout": "1d"}
        return {
            "name": "meetings",
            "relations": relations,
            "query": grouped if self.above else "SELECT * FROM j",
            "output": {"topic": "out"},
            "emission": {"type": "on_match"},
            "within": {
                "before": f"{self.before}ms",
                "after": f"{self.after}ms",
                "grace": f"{self.grace}s",
            },
            "row_time": "latest" if self.latest else "driving",
            "topics": dict.fromkeys(SIDES, topic),
            "partitions": 2,
        }


def draw(dice: Dice) -> Drawn:
    """Choose a join; it is grouped, or one side at least is made of groups."""
    above = dice.one_in(3)
    left, right = (draw_side(dice, topic) for topic in SIDES)
    while left.query is None and right.query is None and not above:
        left, right = (draw_side(dice, topic) for topic in SIDES)
    return Drawn(
        kind=dice.pick(["INNER", "LEFT", "RIGHT"] if above else ["INNER", "LEFT", "RIGHT", "FULL"]),
        left=left,
        right=right,
        before=dice.pick([0, 2, 15, 60]) * SECOND,
        after=dice.pick([0, 2, 15, 60]) * SECOND,
        grace=dice.pick([0, 0, 7]),
        latest=dice.one_in(3),
        above=above,
    )


def expected(drawn: Drawn, records: Sequence[Record]) -> list[tuple[int, dict[str, Any]]]:
    """Ask DuckDB over all records at once."""
    with duckdb.connect() as connection:
        for topic in SIDES:
            declared = "k VARCHAR, v INTEGER, ts BIGINT, nr INTEGER"
            connection.execute(f"CREATE TABLE {topic} ({declared})")
        for nr, record in enumerate(records):
            assert record.value is not None
            row = [record.value["k"], record.value["v"], record.ts, nr]
            connection.execute(f"INSERT INTO {record.topic} VALUES (?, ?, ?, ?)", row)
        connection.execute(f"CREATE VIEW l AS {drawn.left.twin}")
        connection.execute(f"CREATE VIEW r AS {drawn.right.twin}")
        near = f"r.ts BETWEEN l.ts - {drawn.before} AND l.ts + {drawn.after}"
        joined = drawn.select.replace("SELECT ", f"SELECT {drawn.time} AS time, ")
        sql, names = f"{joined} AND {near}", ["lk", "lv", "rk", "rv"]
        if drawn.above:
            sql = f"SELECT max(time), lk, count(rv) FROM ({sql}) GROUP BY lk, time // 20000"
            names = ["lk", "n"]
        rows = connection.execute(sql).fetchall()
    return [(at, dict(zip(names, values, strict=True))) for at, *values in rows]


def check(seed: int) -> None:
    """Compare the two."""
    dice, how = Dice(f"meetings {seed}"), How.of(f"meetings {seed}")
    drawn = draw(dice)
    records = [each for each in draw_records(dice) if each.topic in SIDES]
    author = drawn.pipeline()
    got = run(author, records, dice, how)
    assert _sorted(got) == _sorted(expected(drawn, records)), f"seed {seed}: {author}"


def _sorted(rows: Sequence[tuple[int, dict[str, Any]]]) -> list[str]:
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

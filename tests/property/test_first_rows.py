"""The first row of each key is the one that DuckDB finds among all records, in any batches.

Of equal ones it is the earliest record. A case is a seed, as in `test_against_oracle`.
"""

# pyright: basic

import json
from typing import Any

import duckdb
import pytest

from tests.property.dice import Dice
from tests.property.executor import How
from tests.property.one_topic import OneTopic
from tests.property.seeds import blocks, many
from tests.property.test_twin import COLUMNS, drawn_records
from tests.reference.records import Record

pytestmark = pytest.mark.slow

FAST, MANY = 20, 330
SCHEMA = {**COLUMNS, "n": "BIGINT"}


def draw(dice: Dice) -> tuple[str, str]:
    """Choose PARTITION BY, and ORDER BY, which may be empty."""
    way = dice.pick(["", " ASC", " DESC"])
    nulls = [dice.pick(["", " NULLS FIRST", " NULLS LAST"]) for _ in "ab"]
    order = dice.some(["v", "k", "g + v", "d", "w"], 2)
    parts = [f"{sql}{way}{null}" for sql, null in zip(order, nulls, strict=False)]
    return ", ".join(dice.some(["k", "g", "w"], 2)), ", ".join(parts)


def query(by: str, order: str, where: str, *, qualify: bool) -> str:
    """Write the query in one of its two forms."""
    over = " ".join(
        [*([f"PARTITION BY {by}"] if by else []), *([f"ORDER BY {order}"] if order else [])]
    )
    if qualify:
        columns = "*" if "v" in order else "k, g, w, n, d"
        return f"SELECT {columns} FROM t {where} QUALIFY row_number() OVER ({over}) = 1"
    inner = f"SELECT *, row_number() OVER ({over}) AS place FROM t {where}"
    return f"SELECT n, v, k || '!' AS k2, k, g, w FROM ({inner}) r WHERE place = 1"


def expected(sql: str, records: list[Record]) -> list[dict[str, Any]]:
    """Ask DuckDB over all records at once."""
    with duckdb.connect() as connection:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in SCHEMA.items())
        connection.execute(f"CREATE TABLE t ({columns})")
        for record in records:
            assert record.value is not None
            values = [record.value.get(name) for name in SCHEMA]
            connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(SCHEMA))})", values)
        rows = connection.sql(f"SELECT to_json(r) FROM ({sql}) r").fetchall()
    return [json.loads(row) for (row,) in rows]


def check(seed: int) -> None:
    """Compare the two."""
    dice = Dice(f"first {seed}")
    by, order = draw(dice)
    where = dice.pick(["", "", "WHERE w > 1"])
    sql = query(by, order, where, qualify=dice.one_in(2))
    author = {
        "name": "first",
        "query": sql,
        "output": {"topic": "out", "coalesce": dice.pick(["batch", "none"])},
        "topics": {"t": {"columns": SCHEMA, "lateness": "1h"}},
        "partitions": 2,
    }
    records = drawn_records(dice, dice.number(1, 25))
    run = OneTopic(author, SCHEMA, How.of(f"first {seed}"))
    run.take(records, dice, 8)
    last = {row["key"]: row["value"] for row in run.rows}
    got = [json.loads(value) for value in last.values() if value is not None]
    earliest = f"{order}, n" if order else "n"
    want = expected(query(by, earliest, where, qualify="QUALIFY" in sql), records)
    assert _sorted(got) == _sorted(want), f"seed {seed}: {sql}"


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_is_that_of_duckdb(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_are_those_of_duckdb(seeds: range) -> None:
    for seed in seeds:
        check(seed)

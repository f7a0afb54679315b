"""Groups and windows give at the end what DuckDB gives over all records at once.

The query of a case is run twice: by the engine, batch by batch, with records out of order within
the lateness of the topic, replays and crashes; and by DuckDB, over one table of all records, where
windows are SQL of this test. A case is a seed, as in `test_against_oracle`.
"""

# pyright: basic

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
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

FAST, MANY = 20, 340

COLUMNS = {"k": "VARCHAR", "g": "INTEGER", "v": "INTEGER", "d": "DOUBLE", "w": "INTEGER"}
LATENESS = 20_000
CALLS = (
    "count(*)", "count(v)", "count(DISTINCT v)", "count(DISTINCT k) FILTER (WHERE v > 2)",
    "sum(v)", "sum(d)", "sum(v) FILTER (WHERE w > 3)", "sum(DISTINCT v)", "avg(v)", "avg(d)",
    "min(v)", "max(v)", "min(k)", "max(d)", "median(v)", "quantile_cont(v, 0.25)",
    "quantile_disc(v, 0.75)", "stddev_samp(v)", "var_pop(v)", "bool_and(v > 0)",
    "bool_or(v > 4)", "bit_xor(v)", "bit_or(v)", "product(w)", "count_if(v > 1)",
    "list(v ORDER BY w, v, d)", "string_agg(k, '-' ORDER BY w, k)", "arg_max(n, n)",
    "max(v) - min(v)", "sum(v) + count(*)", "coalesce(sum(v), -1)", "histogram(g)", "entropy(g)",
    "corr(v, w)", "regr_slope(v, w)", "max(v, 2)", "array_agg(DISTINCT g ORDER BY g)",
)  # fmt: skip
"""Calls whose results do not depend on the order of records."""
NEAR = 9
"""Digits of a DOUBLE that do not depend on the order in which it was added up."""


@dataclass(frozen=True, kw_only=True)
class Twin:
    """One query, as the engine and as DuckDB gets it."""

    keys: tuple[str, ...]
    calls: tuple[str, ...]
    window: tuple[str, int, int] | None
    """Kind, size or gap, and advance, in ms."""
    where: str | None
    having: str | None
    final: bool
    each: bool
    every: str | None
    """How long a key holds its changes back; None: it does not."""
    ended: bool
    """Rows of windows leave when these end, and again with late records."""
    again: bool
    """The rows of windows are counted by the starts of these."""


def draw(dice: Dice) -> Twin:
    """Choose a query."""
    kind = dice.pick([None, None, "tumble", "time_bucket", "date_trunc", "hop", "session"])
    length = dice.pick([5_000, 10_000, 30_000, 60_000])
    window = None if kind is None else (kind, length, length)
    if kind == "hop":
        window = (kind, length * dice.pick([2, 3]), length)
    if kind == "date_trunc":
        window = (kind, 60_000, 60_000)
    final = window is not None and not dice.one_in(3)
    return Twin(
        keys=tuple(dice.some(["k", "g", "g % 2"], 2)),
        calls=tuple(dice.some(CALLS, 4)) or ("count(*)",),
        window=window,
        where=dice.pick([None, None, "v IS NULL OR v > 1", "k <> 'b'"]),
        having=dice.pick([None, None, "count(*) > 1", "sum(v) % 2 = 0", "count(*) < 4"]),
        final=final,
        each=dice.one_in(2),
        every=dice.pick([None, "1s", "10s", "1h"]),
        ended=window is not None and not final and dice.one_in(2),
        again=final and kind != "session" and dice.one_in(3),
    )


def query(twin: Twin) -> str:
    """Write the query as an author does."""
    by = [*(f"k{n}" for n in range(len(twin.keys)))]
    bounds: list[str] = []
    if twin.window is not None:
        kind, size, advance = twin.window
        by.append(
            {
                "tumble": f"tumble(INTERVAL {size} MILLISECONDS)",
                "time_bucket": f"time_bucket(INTERVAL {size} MILLISECONDS, _time)",
                "date_trunc": "date_trunc('minute', _time)",
                "hop": f"hop(INTERVAL {size} MILLISECONDS, INTERVAL {advance} MILLISECONDS)",
                "session": f"session(INTERVAL {size} MILLISECONDS)",
            }[kind]
        )
        bounds = ["epoch_ms(window_start) AS since", "epoch_ms(window_end) AS until"]
    if twin.again:
        return _select(twin, "t", by, ["window_start AS start"])
    return _select(twin, "t", by, bounds)


def _select(twin: Twin, table: str, by: list[str], bounds: list[str]) -> str:
    keys = [f"{key} AS k{n}" for n, key in enumerate(twin.keys)]
    calls = [f"{call} AS c{n}" for n, call in enumerate(twin.calls)]
    return " ".join(
        [
            f"SELECT {', '.join([*keys, *calls, *bounds])} FROM {table}",
            *([f"WHERE {twin.where}"] if twin.where else []),
            *([f"GROUP BY {', '.join(by)}"] if by else []),
            *([f"HAVING {twin.having}"] if twin.having else []),
        ]
    )


def pipeline(twin: Twin) -> dict[str, Any]:
    """Write the pipeline."""
    emission: dict[str, Any] = {} if twin.final else {"type": "immediate"}
    topic: dict[str, Any] = {"columns": {**COLUMNS, "n": "BIGINT"}}
    if twin.ended:
        emission = {"type": "final", "late_updates": True}
    else:
        topic["lateness"] = f"{LATENESS}ms"
    if twin.each and not twin.final:
        emission["coalesce"] = "none"
    elif twin.every and not twin.final:
        emission["every"] = twin.every
    made: dict[str, Any] = {
        "name": "twin",
        "query": query(twin),
        "output": {"topic": "out", "format": "json"},
        "topics": {"t": topic},
        "partitions": 2,
    }
    if twin.again:
        made["relations"] = {"w": {"query": made["query"]}}
        made["query"] = (
            "SELECT epoch_ms(window_start) AS since, epoch_ms(window_end) AS until, "
            "count(*) AS c0 FROM w GROUP BY start"
        )
    if emission:
        made["emission"] = emission
    if twin.ended:
        made["aggregation"] = {"grace": f"{LATENESS}ms"}
    return made


def with_windows(twin: Twin) -> str:
    """Write a query that gives each record its windows, as `since` and `until`."""
    if twin.window is None:
        return "SELECT * FROM records"
    kind, size, advance = twin.window
    if kind == "session":
        parts = ", ".join(twin.keys) or "1"
        passed = f"SELECT * FROM records WHERE {twin.where or 'true'}"
        return f"""
            WITH passed AS ({passed}), marked AS (
                SELECT *, coalesce(ms - lag(ms) OVER (PARTITION BY {parts} ORDER BY ms), {size} + 1)
                    > {size} AS first FROM passed
            ), numbered AS (
                SELECT *, count_if(first) OVER (PARTITION BY {parts} ORDER BY ms) AS number
                FROM marked
            )
            SELECT *, min(ms) OVER session AS since, max(ms) OVER session + {size} AS until
            FROM numbered WINDOW session AS (PARTITION BY {parts}, number)"""
    step = f"(ms - ms % {advance})"
    return f"""
        SELECT *, {step} - n_of * {advance} AS since, since + {size} AS until
        FROM records, range({size // advance}) AS r(n_of)"""


def expected(twin: Twin, records: list[Record]) -> list[dict[str, Any]]:
    """Ask DuckDB over all records at once."""
    with duckdb.connect() as connection:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
        connection.execute(f"CREATE TABLE records ({columns}, n BIGINT, ms BIGINT)")
        for record in records:
            assert record.value is not None
            values = [record.value.get(name) for name in (*COLUMNS, "n")]
            places = ", ".join("?" * (len(values) + 1))
            connection.execute(f"INSERT INTO records VALUES ({places})", [*values, record.ts])
        by = [f"k{n}" for n in range(len(twin.keys))]
        bounds: list[str] = []
        if twin.window is not None:
            by += ["since", "until"]
            bounds = ["since", "until"]
        passed = f"SELECT count(*) FROM records WHERE {twin.where or 'true'}"
        if not by and connection.sql(passed).fetchall() == [(0,)]:
            return []  # a group begins with its first record
        sql = _select(twin, f"({with_windows(twin)})", by, bounds)
        if twin.again:
            sql = f"SELECT since, until, count(*) AS c0 FROM ({sql}) GROUP BY ALL"
        found = connection.sql(f"SELECT to_json(r) AS row FROM ({sql}) r").fetchall()
    return [json.loads(row) for (row,) in found]


def drawn_records(dice: Dice, count: int) -> list[Record]:
    """Choose records, out of order by less than the lateness."""
    at, records = 0, []
    for n in range(count):
        at += dice.pick([0, 1, 500, 2_000, 5_000, 20_000])
        value: Mapping[str, object] = {
            "k": dice.pick(["a", "a", "b", "ü", None]),
            "g": dice.pick([0, 1, 2, 300, None]),
            "v": dice.pick([1, 2, 3, 5, -4, None]),
            "d": dice.pick([0.5, 0.1, -2.25, 1e3, None]),
            "w": dice.pick([1, 2, 4]),
            "n": n,
        }
        ts = T0 + max(0, at - dice.pick([0, 0, 1, 3_000, LATENESS]))
        records.append(Record(topic="t", offset=n, ts=ts, value=value))
    return records


def actual(twin: Twin, records: list[Record], dice: Dice, how: How) -> list[dict[str, Any]]:
    """Run the engine; return the table at the end, or the rows of a final result."""
    run = OneTopic(pipeline(twin), {**COLUMNS, "n": "BIGINT"}, how)
    run.take(records, dice, 6)
    run.end(T0 + 3_600_000)
    rows = run.rows
    assert run.pipeline.counters["late_rows"] == 0
    if twin.final:
        return [json.loads(row["value"]) for row in rows]
    last = {row["key"]: row["value"] for row in rows}
    return [json.loads(value) for value in last.values() if value is not None]


def check(seed: int) -> None:
    """Compare the two."""
    dice = Dice(f"twin {seed}")
    twin, records = draw(dice), drawn_records(dice, dice.number(1, 30))
    got = actual(twin, records, dice, How.of(f"twin {seed}"))
    want = expected(twin, records)
    assert _sorted(got) == _sorted(want), f"seed {seed}: {query(twin)}"


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(_rounded(row), sort_keys=True) for row in rows)


def _rounded(value: Any) -> Any:
    """Return what two sums of DOUBLE have in common, added in whatever order; JSON has no NaN."""
    match value:
        case dict():
            return {name: _rounded(each) for name, each in value.items()}
        case list():
            return [_rounded(each) for each in value]
        case float():
            # 0.0 added: there is no -0.0
            return round(value, NEAR) + 0.0 if isfinite(value) else None
        case _:
            return value


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_equals_the_batch_twin(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_equal_the_batch_twin(seeds: range) -> None:
    for seed in seeds:
        check(seed)

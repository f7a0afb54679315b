# pyright: basic

import random

import numpy as np
import pyarrow as pa
import pytest

from kaflow_engine.duck.queries import query
from kaflow_engine.operators.rows.row_order import order_of

NARROW = [-(1 << 31) + 1, (1 << 31) - 1, 0]
WIDE = [-(1 << 62), -1, 0, 1, (1 << 62) + 5, (1 << 63) - 1]


def column(rng: random.Random, count: int) -> list[int]:
    kind = rng.randrange(4)
    if kind == 0:
        return [7] * count
    if kind == 1:
        some = rng.choice([NARROW, WIDE])
        return [rng.choice(some) for _ in range(count)]
    span = rng.choice([2, 5, 1 << 20, 1 << 45])
    return [rng.randrange(span) - span // 2 for _ in range(count)]


@pytest.mark.parametrize("seed", range(300))
def test_rows_are_ordered_by_the_first_column_that_tells_them_apart(seed: int):
    rng = random.Random(seed)
    count, names = rng.choice([0, 1, 2, 40]), "abcdef"[: rng.randrange(1, 7)]
    columns = {name: column(rng, count) for name in names}
    columns |= {name: columns[names[0]] for name in names[2:4] if rng.random() < 0.5}
    types = {
        name: pa.int32() if max(map(abs, c), default=0) < 1 << 31 else pa.int64()
        for name, c in columns.items()
    }
    rows = pa.table({name: pa.array(c, types[name]) for name, c in columns.items()})
    tuples = list(zip(*columns.values(), strict=True))
    assert order_of(rows, names).tolist() == sorted(range(count), key=lambda n: tuples[n])
    assert order_of(rows, names).dtype == np.int64


def numbers(rng: random.Random) -> list[int | None] | None:
    if rng.random() < 0.1:
        return None
    some = [*WIDE, None, 0, 1, 2]
    return [rng.choice(some) for _ in range(rng.randrange(4))]


@pytest.mark.parametrize("seed", range(100))
def test_lists_are_ordered_as_duckdb_orders_them(seed: int):
    rng = random.Random(seed)
    count = rng.choice([0, 1, 40])
    a = pa.array([rng.randrange(2) for _ in range(count + 3)], pa.int64())
    lists = pa.array([numbers(rng) for _ in range(count + 3)], pa.list_(pa.int64()))
    rows = pa.table({"a": a, "l": lists}).slice(2, count)
    rows = rows.append_column("n", pa.array(range(count), pa.int64()))
    wanted = query("SELECT n FROM rows ORDER BY a, l, n", rows=rows)["n"].to_pylist()
    assert order_of(rows, ["a", "l"]).tolist() == wanted

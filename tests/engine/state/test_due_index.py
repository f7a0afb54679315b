# pyright: basic

import random

import numpy as np
import pyarrow as pa
import pytest

from kaflow_engine.state.due_index import MOST, Dues, of_index, to_pages
from kaflow_engine.state.keys import due_key, entry_key, split_due


def some(seed: int, count: int, shards: int, times: int) -> Dues:
    rng = random.Random(seed)
    entries = [
        entry_key(bytes((rng.randrange(shards),)) + b"k" * rng.randrange(9), n % 3, b"%05d" % n)
        for n in range(count)
    ]
    stamps = [rng.randrange(-times, times) for _ in entries]
    return Dues(np.array(stamps, np.int64), pa.array(entries, pa.binary()))


def pairs(dues: Dues) -> list[tuple[int, bytes]]:
    return sorted(zip(dues.times.tolist(), dues.entries.to_pylist(), strict=True))


def read(keys: pa.Array, values: pa.Array) -> Dues:
    return of_index(keys.to_pylist(), values.to_pylist())


SIZES = [(1, 1, 1), (2, 1, 1), (5, 256, 9), (300, 3, 9), (2 * MOST, 1, 9), (3 * MOST + 1, 2, 10**6)]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(("count", "shards", "times"), SIZES)
def test_pages_hold_what_is_put_into_them(count: int, shards: int, times: int, mixed: bool):
    dues = some(count, count, shards, times)
    keys, values = to_pages(dues, mixed=mixed)
    assert pairs(read(keys, values)) == pairs(dues)
    assert len(set(keys.to_pylist())) == len(keys)
    for key, value in zip(keys.to_pylist(), values.to_pylist(), strict=True):
        page = read(pa.array([key]), pa.array([value]))
        shard, due, _ = split_due(key)
        assert {entry[0] for entry in page.entries.to_pylist()} == {shard}
        assert page.times.min() == due
        assert len(page.times) <= MOST
        assert mixed or set(page.times.tolist()) == {due}
        assert page.times.tolist() == sorted(page.times.tolist())


def test_pages_are_few():
    keys, _ = to_pages(some(1, 10 * MOST, 2, 10**6), mixed=True)
    assert len(keys) <= 12


def test_the_order_of_entries_does_not_matter():
    dues = some(3, 1200, 4, 50)
    order = np.random.default_rng(3).permutation(1200)
    moved = Dues(dues.times[order], dues.entries.take(pa.array(order)))
    assert [c.to_pylist() for c in to_pages(dues, mixed=True)] == [
        c.to_pylist() for c in to_pages(moved, mixed=True)
    ]


def test_an_entry_alone_has_a_key_of_its_own():
    entry = entry_key(b"\x07a", 2, b"!")
    keys, values = to_pages(Dues(np.array([5]), pa.array([entry], pa.binary())), mixed=True)
    assert (keys.to_pylist(), values.to_pylist()) == ([due_key(7, 5, entry)], [b""])


def test_two_pages_that_begin_alike_are_two():
    entries = [entry_key(b"\x07a", 2, bytes((n,))) for n in range(3)]
    first, second = (
        to_pages(Dues(np.array([5, 5]), pa.array([entries[0], each], pa.binary())), mixed=True)
        for each in entries[1:]
    )
    assert first[0].to_pylist() != second[0].to_pylist()

# pyright: basic

import pyarrow as pa

from kaflow_engine.state import keys
from kaflow_engine.state.copies.memory import MemoryState


def test_entry_key_is_taken_apart_again():
    key = keys.entry_key(b"\x09join", 3, b"suffix")
    assert key == b"\x09\x03\x00\x00\x00\x04joinsuffix"
    assert keys.split_entry(key) == (b"\x09join", 3, b"suffix")


def test_join_keys_that_share_a_prefix_do_not_meet():
    entries = [keys.entry_key(key, 1, b"x") for key in (b"\x00a", b"\x00ab")]
    state = MemoryState(dict.fromkeys(entries, b""))
    assert state.scan([keys.entry_key(b"\x00a", 1)]).keys == entries[:1]


def test_many_entry_keys_are_those_of_each_one():
    shard_keys = [b"\x00", b"\xffab", b"\x07" + b"x" * 300]
    found = keys.entry_keys(pa.array([b"left out", *shard_keys], pa.binary()).slice(1), 9)
    assert found.to_pylist() == [keys.entry_key(key, 9) for key in shard_keys]


def test_due_entries_are_ordered_by_time_and_cut_strictly():
    dues = [-5, 0, 7, 8, 1 << 40]
    state = MemoryState(dict.fromkeys([keys.due_key(1, due, b"e") for due in dues], b""))
    found = state.range(*keys.due_range(1, 8)).keys
    assert [keys.split_due(key) for key in found] == [(1, due, b"e") for due in dues[:3]]


def test_an_infinite_limit_takes_everything_of_the_shard():
    state = MemoryState(
        {
            keys.due_key(shard, due, b""): b""
            for shard, due in ((254, 1), (255, 2), (255, (1 << 63) - 1))
        }
    )
    assert len(state.range(*keys.due_range(255, 1 << 63)).keys) == 2
    assert len(state.range(*keys.due_range(255, (1 << 63) - 1)).keys) == 1
    assert len(state.range(*keys.due_range(254, 1 << 70)).keys) == 1
    assert state.range(*keys.due_range(255, -(1 << 70))).keys == []


def test_many_entries_are_taken_apart_as_each_is():
    names = [
        keys.entry_key(b"\x09join", 3, b"suffix"),
        keys.entry_key(b"\xff", 100),
        keys.entry_key(b"\x00" + bytes(300), 0, b"\x00"),
    ]
    owners, sides, suffixes = keys.split_entries(pa.array(names, pa.binary()))
    found = zip(owners.to_pylist(), sides.tolist(), suffixes.to_pylist(), strict=True)
    assert list(found) == [keys.split_entry(name) for name in names]
    none = keys.split_entries(pa.array([], pa.binary()))
    assert [len(each) for each in none] == [0, 0, 0]

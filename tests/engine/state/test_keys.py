from kaflow_engine.state import keys
from kaflow_engine.state.memory import MemoryState


def test_entry_key_is_taken_apart_again():
    key = keys.entry_key(b"\x09join", 3, b"suffix")
    assert key == b"\x09\x03\x00\x00\x00\x04joinsuffix"
    assert keys.split_entry(key) == (b"\x09join", 3, b"suffix")


def test_join_keys_that_share_a_prefix_do_not_meet():
    state = MemoryState(dict.fromkeys(keys.entry_keys([b"\x00a", b"\x00ab"], 1, [b"x", b"x"]), b""))
    assert state.scan(keys.entry_keys([b"\x00a"], 1)).keys == [keys.entry_key(b"\x00a", 1, b"x")]


def test_due_entries_are_ordered_by_time_and_cut_strictly():
    dues = [-5, 0, 7, 8, 1 << 40]
    state = MemoryState(dict.fromkeys(keys.due_keys([1] * 5, dues, [b"e"] * 5), b""))
    found = state.range(*keys.due_range(1, 8)).keys
    assert [keys.split_due(key) for key in found] == [(1, due, b"e") for due in dues[:3]]


def test_an_infinite_limit_takes_everything_of_the_shard():
    state = MemoryState(
        dict.fromkeys(keys.due_keys([254, 255, 255], [1, 2, (1 << 63) - 1], [b""] * 3), b"")
    )
    assert len(state.range(*keys.due_range(255, 1 << 63)).keys) == 2
    assert len(state.range(*keys.due_range(255, (1 << 63) - 1)).keys) == 1
    assert len(state.range(*keys.due_range(254, 1 << 70)).keys) == 1
    assert state.range(*keys.due_range(255, -(1 << 70))).keys == []
    assert len(state.range(*keys.shard_range(255)).keys) == 2

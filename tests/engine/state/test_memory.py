from kaflow_engine.state.copies.memory import MemoryState
from kaflow_engine.state.log.changes import to_changes


def test_later_changes_of_a_key_win():
    state = MemoryState()
    state.apply(to_changes([b"a", b"b", b"a", b"b"], [b"1", b"2", b"3", None]))
    assert state.entries() == {b"a": b"3"}
    assert state.get([b"b", b"a", b"a"]) == [None, b"3", b"3"]


def test_scans_stay_sorted_through_puts_and_deletes():
    state = MemoryState({b"b": b"1"})
    assert state.range(b"", None).keys == [b"b"]
    state.apply(to_changes([b"a", b"c"], [b"2", b"3"]))
    assert state.range(b"", b"c").keys == [b"a", b"b"]
    state.apply(to_changes([b"b", b"b", b"d"], [None, b"4", b"5"]))
    found = state.scan([b"d", b"x", b""])
    assert found.index == [0, 2, 2, 2, 2]
    assert found.keys == [b"d", b"a", b"b", b"c", b"d"]
    assert found.values == [b"5", b"2", b"4", b"3", b"5"]

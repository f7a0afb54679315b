"""Reading many entries at once."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kaflow_engine.state.copies.memory import MemoryState
from kaflow_engine.state.copies.rocks import open_copy
from kaflow_engine.state.log.changes import to_changes
from kaflow_engine.state.reader import Entries, Scanned, StateRef, read_through


class Counted:
    """A state that counts the keys that are looked up one by one."""

    def __init__(self, state: MemoryState) -> None:
        self.state, self.looked_up = state, 0

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.looked_up += len(keys)
        return self.state.get(keys)

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        return self.state.scan(prefixes)

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        return self.state.range(start, stop, most)


def name(shard: int, number: int) -> bytes:
    return bytes((shard,)) + b"%06d" % number


@pytest.mark.parametrize(
    ("held", "wanted", "looked_up"),
    [
        (range(100), range(100), 0),
        (range(100), range(1, 99), 0),
        (range(200), range(0, 200, 3), 134),
        (range(0, 100, 2), range(100), 0),
        (range(100), range(10), 20),
        (range(0), range(60), 0),
        (range(60), range(0), 0),
    ],
    ids=["all", "in the middle", "a third of them", "some are not there", "few", "nothing", "none"],
)
def test_read_through(held: range, wanted: range, looked_up: int) -> None:
    entries = {name(shard, n): b"%d" % n for shard in (3, 255) for n in held}
    names = [name(shard, n) for shard in (3, 255) for n in wanted]
    state = Counted(MemoryState(entries))
    assert read_through(state, names) == [entries.get(each) for each in names]
    assert state.looked_up == looked_up


@pytest.mark.parametrize("names", [["a", "b", "c"], ["c", "a", "b", "a"], ["a", "a"], []])
def test_a_copy_gives_values_in_the_order_of_the_request(tmp_path: Path, names: list[str]) -> None:
    keys = [each.encode() for each in names]
    with open_copy(tmp_path / "0-0", StateRef("s", 1)) as copy:
        copy.apply(to_changes([b"a", b"b"], [b"1", b"2"]), 1)
        assert copy.get(keys) == [{b"a": b"1", b"b": b"2"}.get(key) for key in keys]

"""Values that stay in memory while a copy is open to be read."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from kaflow_engine.state.copies.known import Known, Room
from kaflow_engine.state.copies.memory import MemoryState

ENTRIES = {b"k%02d" % n: b"v%d" % n for n in range(0, 100, 2)}


class Asked(MemoryState):
    """Notes which keys it is asked for."""

    def __init__(self) -> None:
        super().__init__(ENTRIES)
        self.seen: list[Sequence[bytes]] = []

    def read(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        self.seen.append(keys.to_pylist())
        return super().read(keys)


def keys(*numbers: int) -> list[bytes]:
    return [b"k%02d" % n for n in numbers]


def read(reader: Known, asked: list[bytes]) -> None:
    found = reader.read(pa.array(asked, pa.binary())).to_pylist()
    assert found == [ENTRIES.get(key) for key in asked]


@pytest.mark.parametrize(
    ("calls", "asked"),
    [
        pytest.param([[], [1]], [[1]], id="nothing at first"),
        pytest.param([[3, 2, 1], [1, 2], [2, 3]], [[3, 2, 1]], id="known: there, or not there"),
        pytest.param([[1, 2], [4, 2, 3, 1]], [[1, 2], [4, 3]], id="some are new"),
        pytest.param([[*range(20)], [3, 1]], [[*range(20)], [3, 1]], id="few are read as they are"),
        pytest.param([[*range(20)], [3, 1, 2], [3, 1]], [[*range(20)], [3, 1]], id="some are not"),
    ],
)
def test_a_copy_is_asked_once_for_each_key(calls: list[list[int]], asked: list[list[int]]):
    copy = Asked()
    reader = Known(copy, Room())
    for each in calls:
        read(reader, keys(*each))
    assert copy.seen == [keys(*each) for each in asked]


@pytest.mark.parametrize(
    ("calls", "last"),
    [
        pytest.param([[1, 2, 3, 4], [5, 6, 7], [1, 2, 3], [3, 4]], [5, 6, 7], id="known stay"),
        pytest.param([[1, 2, 3, 4], [5, 6, 7], [1, 8, 9], [1, 2]], [1, 2], id="of no more use"),
    ],
)
def test_no_more_stays_than_fits(calls: list[list[int]], last: list[int]):
    """The first call fits in, the second does not."""
    copy, room = Asked(), Room(70)
    reader = Known(copy, room)
    for each in calls:
        read(reader, keys(*each))
        assert room.left >= 0
    assert copy.seen[-1] == keys(*last)
    reader.forget()
    assert room.left == 70


def test_what_one_copy_knows_another_has_no_room_for():
    copies, room = (Asked(), Asked()), Room(70)
    first, second = (Known(copy, room) for copy in copies)
    for reader in (first, first, second, second):
        read(reader, keys(1, 2, 3, 4))
    assert [len(copy.seen) for copy in copies] == [1, 2]

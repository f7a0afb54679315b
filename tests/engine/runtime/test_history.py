"""Which offsets lie in files, and which times."""
# pyright: basic

import pytest

from kaflow_engine.flow.sources import HistoryParams
from kaflow_engine.runtime.source.history import Piece, TopicHistory
from kaflow_engine.runtime.source.record_source import split

SOURCE = HistoryParams(
    path="/a", format="json", partition="p", offset="o", timestamp="t", key=None, value=None
)


def history(*pieces):
    """A history of files given as partition, first, end, since, until."""
    found = [
        Piece(file=f"f{n}", size=1, partition=p, first=first, end=end, since=since, until=until)
        for n, (p, first, end, since, until) in enumerate(pieces)
    ]
    return TopicHistory(topic="t", source=SOURCE, base="/a", schema="{}", pieces=tuple(found))


TWO = history((0, 5, 10, 100, 200), (0, 8, 20, 150, 300), (1, 0, 3, 100, 110))


def test_where_it_begins_and_ends():
    assert (TWO.starts, TWO.ends) == ({0: 5, 1: 0}, {0: 20, 1: 3})


@pytest.mark.parametrize(
    ("pieces", "holes"),
    [
        ([(0, 5, 10, 0, 0), (0, 8, 20, 0, 0), (1, 0, 3, 0, 0)], []),
        ([(0, 12, 20, 0, 0), (0, 5, 10, 0, 0), (0, 30, 31, 0, 0)], [(0, (10, 12)), (0, (20, 30))]),
        ([(0, 0, 50, 0, 0), (0, 5, 10, 0, 0), (0, 50, 60, 0, 0)], []),
    ],
)
def test_holes_between_files(pieces, holes):
    assert history(*pieces).holes == holes


@pytest.mark.parametrize(
    ("time", "since", "until"),
    [
        (50, {0: 5, 1: 0}, {0: 5, 1: 0}),
        (105, {0: 5, 1: 0}, {0: 10, 1: 3}),
        (160, {0: 5}, {0: 20}),
        (250, {0: 8}, {0: 20}),
        (301, {}, {}),
    ],
)
def test_where_times_lie(time, since, until):
    assert (TWO.since(time), TWO.until(time)) == (since, until)


def test_ranges_lie_in_files_until_they_end():
    ranges = {"t": {0: (5, 20), 1: (3, 9), 2: (0, 4), 3: (7, 7)}, "u": {0: (1, 2)}}
    past, rest = split(ranges, {"t": TWO})
    assert past == {"t": {0: (5, 20)}}
    assert rest == {"t": {1: (3, 9), 2: (0, 4)}, "u": {0: (1, 2)}}

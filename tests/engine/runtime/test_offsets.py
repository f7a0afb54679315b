import pytest

from kaflow_engine.runtime.failures.failures import DataLost
from kaflow_engine.runtime.source.offsets import (
    assert_readable,
    ends_of,
    logged_ends,
    merged,
    next_cut,
    ranges_between,
    reaches,
    read_to_end,
    size_of,
    spark_partitions,
    with_added_partitions,
)


def test_ranges_hold_what_lies_between_and_a_new_partition_begins_at_0():
    ranges = ranges_between({"a": {0: 5, 1: 7}}, {"a": {0: 9, 2: 3}})
    assert ranges == {"a": {0: (5, 9), 1: (7, 7), 2: (0, 3)}}
    assert size_of(ranges) == 7
    assert ends_of(ranges) == {"a": {0: 9, 1: 7, 2: 3}}


def test_the_second_wins():
    assert merged({"a": {0: 1, 1: 1}}, {"a": {1: 2}, "b": {0: 3}}) == {
        "a": {0: 1, 1: 2},
        "b": {0: 3},
    }


@pytest.mark.parametrize(
    ("at", "goal", "reached"),
    [
        ({"a": {0: 5}}, {"a": {0: 5}}, True),
        ({"a": {0: 4}}, {"a": {0: 5}}, False),
        ({}, {"a": {0: 0}}, True),
        ({}, {"a": {0: 1}}, False),
        ({"a": {0: 9}}, {}, True),
    ],
)
def test_reaches(at, goal, reached):
    assert reaches(at, goal) is reached


def test_read_to_end_names_partitions_whose_end_was_known_and_reached():
    ranges = {"a": {0: (0, 5), 1: (0, 4)}, "b": {0: (0, 0)}}
    assert read_to_end(ranges, {"a": {0: 5, 1: 5}}) == (("a", 0),)


def test_cuts_share_what_is_left_and_always_move_on():
    cut = next_cut({"a": {0: 0, 1: 90}}, {"a": {0: 900, 1: 100}, "b": {0: 0}}, 100)
    assert cut == {"a": {0: (0, 98), 1: (90, 91)}, "b": {0: (0, 0)}}


def test_cuts_reach_the_goal():
    at, goal, cuts = {"a": {0: 3}}, {"a": {0: 50, 1: 7}}, 0
    while not reaches(at, goal):
        at = merged(at, ends_of(next_cut(at, goal, 10)))
        cuts += 1
    assert at == goal
    assert cuts < 12


def test_the_last_line_of_sparks_offset_file_tells_the_ends(tmp_path):
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchWatermarkMs":0}\n{"t":{"0":625,"1":7}}')
    assert logged_ends(tmp_path, 3) == {"t": {0: 625, 1: 7}}


def test_the_next_offset_of_every_partition_is_named():
    at = with_added_partitions({"a": {0: 7, 5: 1}}, {"a": 2, "b": 1})
    assert at == {"a": {0: 7, 1: 0, 5: 1}, "b": {0: 0}}


def test_partitions_for_spark():
    assert spark_partitions({"a": {1: (0, 2), 0: (0, 1)}}) == '{"a": [0, 1]}'


@pytest.mark.parametrize(
    ("needed", "low", "high", "message"),
    [
        (5, 9, 20, "offset 5 comes next, but the first that is left is 9: 4 offsets are lost"),
        (5, 0, 3, "offset 5 comes next, but the topic begins at 0 and ends at 3"),
    ],
)
def test_lost_records_are_told_with_the_numbers(needed, low, high, message):
    with pytest.raises(DataLost, match=f"topic 't', partition 2: {message}"):
        assert_readable({"t": {2: needed}}, {"t": {2: low}}, {"t": {2: high}})


def test_a_topic_that_is_gone_is_told():
    with pytest.raises(DataLost, match="topic 't', partition 0 is gone"):
        assert_readable({"t": {0: 1}}, {}, {})


def test_what_is_there_is_readable():
    assert_readable({"t": {0: 5}}, {"t": {0: 5}}, {"t": {0: 5}})

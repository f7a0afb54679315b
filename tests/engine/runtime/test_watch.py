import pytest

from kaflow_engine.runtime.session import cores
from kaflow_engine.runtime.state_start import next_offsets
from kaflow_engine.runtime.watch import Watch, lag_of


def test_lag_is_what_is_not_read_yet():
    ends = {"a": {0: 10, 1: 5}, "b": {0: 3}}
    assert lag_of({"a": {0: 4, 1: 9}}, ends) == {"a": 6, "b": 3}


def test_every_change_is_told():
    told = []
    watch = Watch("p", told.append)
    watch.say(state="running")
    watch.say(last_error="x")
    assert [(p.pipeline, p.state, p.last_error) for p in told] == [
        ("p", "running", None),
        ("p", "running", "x"),
    ]


def test_the_next_offset_of_every_partition_is_named():
    assert next_offsets({"a": {0: 7}}, {"a": 2, "b": 1}) == {"a": {0: 7, 1: 0}, "b": {0: 0}}


@pytest.mark.parametrize(
    ("master", "count"), [("local[3]", 3), ("local[2,1]", 2), ("local", 1), ("yarn", 2)]
)
def test_cores_of_a_master(master, count):
    assert cores(master) == count

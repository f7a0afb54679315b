"""Batches of so many records, and of so many bytes."""

from types import SimpleNamespace

import pytest

from kaflow_engine.model.config import Config
from kaflow_engine.runtime.batch.batch_limit import USUAL, BatchLimit, limit_of
from kaflow_engine.runtime.source.offsets import ends_of, merged, next_cut, ranges_between, reaches
from tests.engine.runtime.plans_here import filter_plan, grouped_plan

MOST = 50 * USUAL
"""Bytes of a batch: fifty records are never too many."""


def limit(sample=lambda topic, ranges: 0):
    return BatchLimit(1_000, MOST, sample)


def backlog(**counts):
    return {topic: {0: (0, count)} for topic, count in counts.items()}


@pytest.mark.parametrize(
    ("weights", "ranges", "most"),
    [
        ({}, backlog(a=10_000), 1_000),
        ({"a": 100}, backlog(a=10_000), 1_000),
        ({"a": USUAL}, backlog(a=10_000), 50),
        ({"a": USUAL}, backlog(a=50), 1_000),
        ({"a": 2 * USUAL}, backlog(a=10_000), 25),
        ({"a": 1000 * USUAL}, backlog(a=10_000), 1),
        ({"a": USUAL, "b": 100}, backlog(a=500, b=500), 99),
    ],
)
def test_large_records_make_batches_of_few(weights, ranges, most):
    found = limit()
    for topic, weight in weights.items():
        found.took({topic: {0: (0, 10)}}, {topic: 10 * weight})
    assert found.most(ranges) == most


def test_cuts_of_a_backlog_stay_below_the_bytes():
    found, at, goal = limit(), {"a": {0: 0}, "b": {0: 0}}, {"a": {0: 700}, "b": {0: 2_000}}
    found.took(backlog(a=10, b=10), {"a": 10 * USUAL, "b": 1_000})
    while not reaches(at, goal):
        cut = next_cut(at, goal, found.most(ranges_between(at, goal)))
        assert cut["a"][0][1] - cut["a"][0][0] <= 50
        at = merged(at, ends_of(cut))


def test_what_nothing_is_known_of_is_weighed_once_before_it_is_read():
    asked = []

    def sample(topic, ranges):
        asked.append((topic, ranges))
        return USUAL * 30

    found = limit(sample)
    ranges = {"a": {0: (5, 5), 1: (7, 3000), 2: (1, 9), **{p: (0, 90) for p in range(3, 9)}}}
    assert found.most({"a": {0: (0, 50)}}) == 1_000
    assert asked == []
    first = {1: (7, 17), 2: (1, 9), 3: (0, 10), 4: (0, 10)}
    assert [found.most(ranges) for _ in range(2)] == [63, 63]
    assert asked == [("a", {"a": first})]


def test_the_latest_batches_tell_most():
    found = limit()
    found.took(backlog(a=1_000), {"a": 1_000 * 100})
    found.took(backlog(a=1), {"a": USUAL})  # one large record does not make all of them large
    assert found.fits(backlog(a=1_000))
    for _ in range(12):
        found.took(backlog(a=100), {"a": 100 * USUAL})
    assert found.most(backlog(a=1_000)) == pytest.approx(50, abs=1)


def test_partitions_that_hold_nothing_weigh_nothing():
    assert limit().fits({"a": {0: (7, 7)}, "b": {}})
    assert limit().fits({})


@pytest.mark.parametrize(
    ("plan", "reads", "given", "records"),
    [
        (filter_plan("p", "e", "o"), True, None, 200_000),
        (filter_plan("p", "e", "o"), False, None, 400_000),
        (grouped_plan("p", "e", "o"), True, None, 400_000),
        (grouped_plan("p", "e", "o"), True, 7, 7),
    ],
)
def test_batches_are_larger_where_that_spares_work(plan, reads, given, records):
    config, source = Config(max_records=given), SimpleNamespace(reads_topics=reads)
    assert limit_of(config, plan, source).records == records
    assert config.most_bytes == 256 * USUAL


def test_the_first_batch_of_a_run_is_small():
    found = BatchLimit(400_000, MOST, lambda topic, ranges: 100)
    ranges = backlog(a=900_000)
    assert found.most(ranges) == 20_000
    found.took({"a": {0: (0, 20_000)}}, {"a": 2_000_000})
    assert found.most(ranges) == 400_000

"""A clock that jumps a month ahead must not let rows expire that wait: without Spark, real runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.acceptance.crash_pipeline import create_outputs, delivered, log_of
from tests.acceptance.faults_here import MONTH

pytestmark = pytest.mark.kafka

STARTED = 2
"""Readings of the clock until a start has compared it with the brokers'."""


@pytest.fixture
def run(crash_broker, forks, order, unique):
    create_outputs(crash_broker.settings, unique)

    def run(**changes):
        (end,) = forks.run([replace(order, name=unique, **changes)])
        return end, delivered(crash_broker.settings, unique, log_of(Path(order.path), unique))

    return run


def test_a_clock_that_jumps_lets_nothing_expire(run, peace):
    assert run()[1] == peace
    end, found = run(jumps_after=STARTED)
    assert (end.how, end.said) == ("ended", "")
    assert found == peace


def test_a_jump_that_brokers_have_seen_too_is_a_machine_that_slept(run, peace):
    assert run()[1] == peace
    end, found = run(jumps_after=STARTED, brokers_ahead=MONTH, max_clock_skew="60d")
    assert (end.how, end.said) == ("ended", "")
    assert found.counters.get("waiting", 0) == 0 < peace.counters["waiting"]


def test_a_start_a_month_ahead_is_refused_and_does_nothing(run, peace):
    assert run()[1] == peace
    end, found = run(jumps_after=0)
    assert end.said.startswith("ClockWrong: the clock of this machine says 2023-12-14T")
    assert found == peace

"""Which time batches are given, whatever the machine's clock does."""
# pyright: basic

import logging

import pytest

from kaflow_engine.errors import SinkError
from kaflow_engine.runtime.clock import batch_clock
from kaflow_engine.runtime.clock.batch_clock import BatchClock, ClockWrong, warn_of_future
from kaflow_engine.runtime.failures.failures import is_retryable

T = 1_767_225_600_000
S, M, H, D = 1_000, 60_000, 3_600_000, 86_400_000
MOST = 5 * M


class Clocks:
    """Three clocks that are set by hand."""

    def __init__(self, brokers=0):
        self.wall, self.steady, self.brokers = T, 7, brokers
        self.asked = 0
        self.told = []
        self.made = BatchClock(lambda: self.wall, lambda: self.steady)

    def ask(self):
        self.asked += 1
        if isinstance(self.brokers, Exception):
            raise self.brokers
        return None if self.brokers is None else T + self.brokers

    def begin(self):
        self.made.confirm(self.ask, MOST, self.told.append)

    def at(self, wall, steady):
        """Return the time of a batch, so long after the beginning by each clock."""
        self.wall, self.steady = T + wall, 7 + steady
        return self.made() - T


@pytest.mark.parametrize(
    ("brokers", "looks"),
    [
        # (machine's clock, time that passed) → batch time
        pytest.param(0, [((0, 0), 0), ((H, H), H), ((D, D), D)], id="all is well"),
        pytest.param(None, [((S, 0), S), ((2 * S, 0), 0)], id="a second is nothing"),
        pytest.param(0, [((4 * M, 0), 4 * M), ((6 * M, S), 4 * M + S)], id="as far as brokers are"),
        pytest.param(0, [((D, S), S), ((D + H, H), H), ((H, H), H)], id="a day ahead for an hour"),
        pytest.param(0, [((-H, S), -H), ((0, 2 * S), 0), ((H, 3 * S), 3 * S)], id="back and forth"),
        pytest.param(
            None,
            [((i * S, i * S // 2), i * S if i <= 2 else i * S // 2) for i in range(0, 40, 2)],
            id="a clock that runs twice as fast gains no more than a second",
        ),
        pytest.param(D, [((D, S), D), ((D + H, H + S), D + H)], id="the brokers agree"),
        pytest.param(None, [((D, S), S), ((D + H, H), H)], id="the brokers do not tell"),
    ],
)
def test_batch_time_goes_with_the_time_that_passed(brokers, looks):
    clocks = Clocks()
    clocks.begin()
    clocks.brokers = brokers
    assert [clocks.at(*look) for look, _ in looks] == [expected for _, expected in looks]


def test_a_jump_is_told_and_logged_once_and_brokers_are_not_asked_at_every_look(caplog):
    caplog.set_level(logging.INFO, "kaflow.runtime")
    clocks = Clocks()
    clocks.begin()
    for passed in range(0, 20 * S, 50):
        clocks.at(D + passed, passed)
    assert (clocks.asked, clocks.told) == (2, [D])
    clocks.at(D + 31 * S, 31 * S)
    assert clocks.asked == 3
    clocks.at(32 * S, 32 * S)
    assert clocks.told == [D, 0]
    assert [record.getMessage() for record in caplog.records] == [
        "the clock of this machine jumped 1d ahead, and the brokers do not bear it out; batch time "
        "goes on without it",
        "the clock of this machine is right again",
    ]


def test_brokers_that_are_away_bear_nothing_out():
    clocks = Clocks()
    clocks.begin()
    clocks.brokers = SinkError("no broker answers")
    assert clocks.at(D, S) == S


@pytest.mark.parametrize("brokers", [-6 * M, 6 * M, D, -D])
def test_a_start_with_a_clock_unlike_that_of_the_brokers_is_refused(brokers):
    clocks = Clocks(brokers)
    with pytest.raises(ClockWrong) as caught:
        clocks.begin()
    assert is_retryable(caught.value)
    if brokers == -D:
        assert str(caught.value) == (
            "the clock of this machine says 2026-01-01T00:00:00+00:00, that of the brokers "
            "2025-12-31T00:00:00+00:00: they differ by 1d\n"
            "  hint: set the one that is wrong: a batch of a wrong time would let rows that wait "
            "expire, for good ('max_clock_skew' is 5m)"
        )


@pytest.mark.parametrize("brokers", [0, -4 * M, 4 * M, None])
def test_a_start_with_a_clock_much_like_that_of_the_brokers_begins(brokers):
    clocks = Clocks(brokers)
    clocks.begin()
    assert clocks.at(S, S) == S


def test_another_start_of_the_process_does_not_believe_what_the_first_did_not():
    clocks = Clocks()
    clocks.begin()
    assert clocks.at(D, S) == S
    clocks.brokers = None
    clocks.begin()
    assert clocks.at(D, S) == S
    clocks.brokers = D
    clocks.begin()
    assert clocks.at(D + S, 2 * S) == D + S


def test_a_batch_time_that_lies_ahead_is_told(caplog):
    warn_of_future(T, T)
    assert not caplog.records
    warn_of_future(T + D, T)
    assert caplog.messages == [
        "batch time is at 2026-01-02T00:00:00+00:00, 1d ahead of now, and stays there until then: "
        "nothing expires, and no topic falls idle; it was given by a clock that was wrong"
    ]


def test_the_steady_clock_only_passes():
    first = batch_clock.steady_clock()
    assert batch_clock.steady_clock() >= first

"""When a pipeline starts again."""
# pyright: basic

from kaflow_engine.connectors.kafka.errors import BrokerAway, LoginRefused
from kaflow_engine.errors import RunError
from kaflow_engine.formats.schema_registry import RegistryAway
from kaflow_engine.runtime.restart_policy import MOST_FAILURES, RestartPolicy


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_an_outage_is_waited_out_up_to_the_deadline_even_at_the_start():
    clock = Clock()
    policy = RestartPolicy(60.0, clock)
    pauses = []
    while (pause := policy.after(BrokerAway("x"), 0, "starting")) is not None:
        pauses.append(pause)
        clock.now += pause
    assert pauses[:4] == [1.0, 2.0, 4.0, 5.0]
    assert 50 <= clock.now - 100 <= 60


def test_outages_of_several_systems_are_one():
    clock = Clock()
    policy = RestartPolicy(10.0, clock)
    assert policy.after(BrokerAway("x"), 0, "running") is not None
    clock.now += 9.5
    assert policy.after(RegistryAway("x"), 0, "running") is None


def test_a_batch_between_starts_the_count_anew():
    clock = Clock()
    policy = RestartPolicy(10.0, clock)
    assert policy.after(BrokerAway("x"), 0, "running") == 1.0
    clock.now += 9.5
    assert policy.after(BrokerAway("x"), 1, "running") == 1.0


def test_other_failures_are_tried_a_few_times_once_the_pipeline_ran():
    policy = RestartPolicy(1e9)
    assert policy.after(RunError("x"), 0, "starting") is None
    policy = RestartPolicy(1e9)
    tries = [policy.after(RunError("x"), 0, "running") for _ in range(MOST_FAILURES)]
    assert tries == [1.0, 2.0, 4.0, 8.0, 16.0, None]


def test_a_refused_login_is_never_tried_again():
    assert RestartPolicy(1e9).after(LoginRefused("x"), 5, "running") is None

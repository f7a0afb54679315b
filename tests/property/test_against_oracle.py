"""The engine agrees with the reference interpreter on random pipelines, records and cuts."""

# pyright: basic

import os

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.property.executor import Seen, seen_by_engine, seen_by_oracle
from tests.property.render import to_case, to_yaml
from tests.property.scenario import Scenario
from tests.property.strategies import default_ttl, scenarios

FAST = int(os.environ.get("KAFLOW_PROPERTY_CASES", "4"))
MANY = int(os.environ.get("KAFLOW_PROPERTY_CASES", "150"))


def _settings(examples: int, *, derandomize: bool) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=derandomize,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def compare(scenario: Scenario, *, spread: bool, replay: bool) -> None:
    """Run a scenario both ways; on a difference the case is printed as it would be written."""
    said = scenario.interpret()
    note(to_yaml(to_case(scenario, default_ttl(scenario))))
    expected = seen_by_oracle(said)
    actual = seen_by_engine(scenario, said, spread=spread, replay=replay)
    _compare_batches(expected, actual)
    assert actual.dead_letters == expected.dead_letters
    assert actual.counters == expected.counters


def _compare_batches(expected: Seen, actual: Seen) -> None:
    for number, (wanted, got) in enumerate(zip(expected.rows, actual.rows, strict=True), 1):
        assert got == wanted, f"rows of batch {number}"


@_settings(FAST, derandomize=True)
@given(scenarios(early_events_under_smart=True))
def test_agrees_with_the_oracle(scenario: Scenario) -> None:
    compare(scenario, spread=False, replay=False)


@pytest.mark.property
@_settings(MANY, derandomize=False)
@given(scenarios(early_events_under_smart=True), st.booleans(), st.booleans())
def test_agrees_with_the_oracle_on_many(scenario: Scenario, spread: bool, replay: bool) -> None:
    compare(scenario, spread=spread, replay=replay)

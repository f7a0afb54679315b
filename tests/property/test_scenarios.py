"""The oracle keeps its own laws, and a scenario written down means the same when read again."""

# pyright: basic

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.property.render import to_case, to_yaml
from tests.property.scenario import Scenario
from tests.property.strategies import default_ttl, scenarios
from tests.reference.case import differences, run_case
from tests.reference.interpreter import CLASSES

pytestmark = pytest.mark.property

_SETTINGS = settings(
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@_SETTINGS
@given(scenarios(early_events_under_smart=True))
def test_every_driving_record_is_in_one_class(scenario: Scenario) -> None:
    said = scenario.interpret()
    for result in said.results:
        counters = result.counters
        assert counters["read"] == sum(counters[name] for name in CLASSES)
        assert all(count >= 0 for count in counters.values())
    marks = [result.watermark for result in said.results if result.watermark is not None]
    assert marks == sorted(marks)


@_SETTINGS
@given(scenarios())
def test_a_written_scenario_is_read_back(scenario: Scenario) -> None:
    case = to_case(scenario, default_ttl(scenario))
    ran = run_case(case, Path())
    assert differences(case, ran) == [], to_yaml(case)
    assert ran.batches == scenario.interpret().batches


@_SETTINGS
@given(scenarios())
def test_the_same_run_gives_the_same_rows(scenario: Scenario) -> None:
    assert scenario.interpret() == scenario.interpret()

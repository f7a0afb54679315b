"""The engine agrees with the reference interpreter on random pipelines, records and cuts.

A case is a seed. Twenty are in the fast part, the others as `seeds` says. A case that fails is made
small and printed as it would stand in a case file.
"""

# pyright: basic

import pytest

from tests.property.check import difference
from tests.property.executor import How
from tests.property.render import to_case, to_yaml
from tests.property.scenario import Scenario
from tests.property.seeds import blocks, many
from tests.property.shrink import shrink
from tests.property.strategies import random_scenario

pytestmark = pytest.mark.slow

FAST, MANY = 20, 180


def check(seed: int) -> None:
    """Run one case; on a difference, report a smaller one that differs too."""
    scenario, how = random_scenario(seed), How.of(seed)
    found = difference(scenario, how)
    if found is not None:
        small, small_how = shrink(scenario, how, fails_like(found))
        again = difference(small, small_how)
        pytest.fail(report(seed, small, small_how, again or found), pytrace=False)


def fails_like(found: str):
    """Return what tells whether a scenario fails in the same way."""
    kind = found.split(":")[0].rstrip("0123456789")

    def fails(scenario: Scenario, how: How) -> bool:
        try:
            other = difference(scenario, how)
        except Exception:  # the smaller scenario makes no sense
            return False
        return other is not None and other.startswith(kind)

    return fails


def report(seed: int, scenario: Scenario, how: How, found: str) -> str:
    """Return the text of a failure."""
    case = to_yaml(to_case(scenario, f"random {seed}"))
    return f"seed {seed}, {how}\n{found}\n\nas a case of a case file:\n\n{case}"


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_agrees_with_the_oracle(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_agrees_with_the_oracle_on_many(seeds: range) -> None:
    for seed in seeds:
        check(seed)

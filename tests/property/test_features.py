"""Random scenarios cover all that a pipeline may say and all that may happen to a record."""

# pyright: basic

from collections import Counter

import pytest

from tests.property.executor import How
from tests.property.features import EXPECTED, features
from tests.property.strategies import random_scenario

pytestmark = pytest.mark.slow

SCENARIOS = 1000
LEAST = 3
"""How often each feature must occur among these scenarios."""


def test_every_feature_occurs() -> None:
    seen: Counter[str] = Counter()
    for seed in range(SCENARIOS):
        seen.update(features(random_scenario(seed), How.of(seed)))
    assert set(seen) <= EXPECTED
    assert {name: seen[name] for name in EXPECTED if seen[name] < LEAST} == {}

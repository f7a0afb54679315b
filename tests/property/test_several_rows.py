"""The engine agrees with the reference interpreter where events find several rows of a table.

Of the random pipelines of `test_against_oracle` those with such a look-up; `KAFLOW_PROPERTY_CASES`
and `KAFLOW_PROPERTY_FIRST` say how many seeds are looked at, and from where.
"""

# pyright: basic

import pytest

from tests.property.several_rows import finds_several
from tests.property.strategies import random_scenario
from tests.property.test_against_oracle import FIRST, MANY, blocks, check

pytestmark = pytest.mark.slow

_APART = 100_000
"""Seeds of other tests are less than this."""
_FAST = 100
_SEEDS = 4
"""For each case of other tests; about one of ten has such a look-up."""


def check_several(seeds: range) -> None:
    for seed in seeds:
        if finds_several(random_scenario(seed).pipeline):
            check(seed)


def test_several_rows() -> None:
    check_several(range(_APART, _APART + _FAST))


@pytest.mark.property
@pytest.mark.parametrize("seeds", blocks(_APART + _FAST + FIRST, MANY * _SEEDS), ids=str)
def test_several_rows_of_many(seeds: range) -> None:
    check_several(seeds)

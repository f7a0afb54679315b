"""The engine agrees with the reference interpreter where events find several rows of a table.

Of the random pipelines of `test_against_oracle` those with such a look-up.
"""

# pyright: basic

import pytest

from tests.property.seeds import many
from tests.property.several_rows import finds_several
from tests.property.strategies import random_scenario
from tests.property.test_against_oracle import check

pytestmark = pytest.mark.slow

_APART = 100_000
"""Seeds of other tests are less than this."""
_FAST = 100
_MANY = 720
"""About one of ten has such a look-up."""


def check_several(seeds: range) -> None:
    for seed in seeds:
        if finds_several(random_scenario(seed).pipeline):
            check(seed)


def test_several_rows() -> None:
    check_several(range(_APART, _APART + _FAST))


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(_APART + _FAST, _MANY), ids=str)
def test_several_rows_of_many(seeds: range) -> None:
    check_several(seeds)

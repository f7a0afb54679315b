"""Acceptance cases as given and replayed, and cut in one of three other ways, in turn; run locally.

Of the other cases the seed says which half is run, and every sixth is cut so; with
`KAFLOW_RANDOM_CASES=all` all are, in each way. The fast part runs every third acceptance case; the
rest is marked.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.cuts import Cuts
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from kaflow_engine.testing.cases.specs import Case
from tests.acceptance.kills import SEED
from tests.engine.testing.case_folder import read_cases
from tests.property.seeds import ALL

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

AROUND = Surroundings(variables={})
CASES = [
    pytest.param(case, id=f"{file.stem}: {case.name}")
    for file, cases in read_cases().items()
    for case in cases
]
CUTS = ("each", "all", "random:1")
"""Other ways to cut the records; in several tasks, but for each record by itself."""


def _is_acceptance(param: "ParameterSet") -> bool:
    return re.search(r": (KS|RA)\d", str(param.id)) is not None


def _as_given() -> Iterator["ParameterSet"]:
    """Every acceptance case, and one half of the others."""
    for place, param in enumerate(CASES):
        if ALL or _is_acceptance(param) or place % 2 == SEED % 2:
            yield param


def _cuts() -> Iterator["ParameterSet"]:
    """Every acceptance case and every sixth other one with one of the ways to cut."""
    for place, param in enumerate(CASES):
        some = _is_acceptance(param) or place % 6 == 0
        one = [CUTS[place // 6 % len(CUTS)]] if some else []
        for cuts in CUTS if ALL else one:
            yield pytest.param(param.values[0], cuts, id=f"{cuts}-{param.id}")


def check(case: Case, cuts: str, *, replay: bool = False, spread: bool = False) -> None:
    executor = LocalExecutor(spread=spread)
    result = run_case(case, executor, cuts=Cuts.of(cuts), replay=replay, around=AROUND)
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.parametrize("case", [each for each in CASES if str(each.id).startswith("ks")][::3])
def test_some_as_given(case: Case) -> None:
    check(case, "given")


@pytest.mark.slow
@pytest.mark.parametrize("case", [*_as_given()])
def test_as_given_and_replayed(case: Case) -> None:
    check(case, "given", replay=True)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "cuts"), [*_cuts()])
def test_cut_in_other_ways(case: Case, cuts: str) -> None:
    check(case, cuts, spread=cuts != "each")

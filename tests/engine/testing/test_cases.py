"""Every case as given, cut in other ways, replayed, and in several tasks; run locally.

The fast part runs every third acceptance case; the rest is marked.
"""

from pathlib import Path

import pytest

from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.cuts import Cuts
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import find_cases, load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from kaflow_engine.testing.cases.specs import Case

FOLDER = Path(__file__).parent / "cases"
AROUND = Surroundings(variables={})
CASES = [
    pytest.param(case, id=f"{file.stem}: {case.name}")
    for file in find_cases([FOLDER])
    for case in load_cases(file, {})
]
ACCEPTANCE = [param for param in CASES if str(param.id).startswith("ks")]


def check(case: Case, cuts: str, *, replay: bool = False, spread: bool = False) -> None:
    executor = LocalExecutor(spread=spread)
    result = run_case(case, executor, cuts=Cuts.of(cuts), replay=replay, around=AROUND)
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.parametrize("case", ACCEPTANCE[::3])
def test_some_as_given(case: Case) -> None:
    check(case, "given")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_as_given_and_replayed(case: Case) -> None:
    check(case, "given", replay=True)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_each_record_by_itself(case: Case) -> None:
    check(case, "each")


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cuts", ["all", "random:1"])
def test_in_several_tasks(case: Case, cuts: str) -> None:
    check(case, cuts, spread=True)

"""Acceptance cases on Spark as given and replayed, and a sample cut in other ways; one session.

All of joins and emission, every fourth of relations, every fifteenth of other files, and of
`lenses_streams.yaml`, whose cases are much alike, every thirtieth: all of them run locally.
`KAFLOW_KILLS=all` runs all of them here, too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.cuts import Cuts
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from kaflow_engine.testing.cases.specs import Case
from tests.acceptance.kills import ALL
from tests.engine.testing.case_folder import FOLDER, read_cases

if TYPE_CHECKING:
    from kaflow_engine.runtime.case_executor import SparkExecutor

pytestmark = pytest.mark.spark

AROUND = Surroundings(variables={})
STEPS = {"ks": 1, "ra_": 4, "lenses_streams": 30}
"""By how the name of a file begins: of its other cases, one in so many."""


def _chosen(file: Path, cases: list[Case]) -> list[Case]:
    steps = [step for start, step in STEPS.items() if file.stem.startswith(start)]
    step = 1 if ALL or file.parent != FOLDER else (steps or [15])[0]
    return [
        case for place, case in enumerate(cases) if place % step == 0 or case.name.startswith("KS")
    ]


CASES = [
    pytest.param(case, id=f"{file.stem}: {case.name}")
    for file, cases in read_cases().items()
    for case in _chosen(file, cases)
    if case.spec.expect_error is None  # those end before anything runs
]
FREE = [param for param in CASES if param.values[0].spec.cuts is None]
SAMPLE = FREE[:: len(FREE) // 6]


@pytest.fixture(scope="module")
def executors(spark) -> "Mapping[str, SparkExecutor]":
    from kaflow_engine.runtime.case_executor import SparkExecutor  # it imports Spark

    return {"one task": SparkExecutor(spark), "several tasks": SparkExecutor(spark, spread=True)}


def check(case: Case, executor: "SparkExecutor", cuts: str, *, replay: bool = False) -> None:
    result = run_case(case, executor, cuts=Cuts.of(cuts), replay=replay, around=AROUND)
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.parametrize("case", CASES)
def test_as_given_and_replayed(case: Case, executors) -> None:
    check(case, executors["one task"], "given", replay=True)


@pytest.mark.parametrize("case", SAMPLE)
def test_each_record_by_itself(case: Case, executors) -> None:
    check(case, executors["one task"], "each")


@pytest.mark.parametrize("case", SAMPLE)
def test_all_records_at_once_in_several_tasks(case: Case, executors) -> None:
    check(case, executors["several tasks"], "all")

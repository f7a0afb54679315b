"""Every case on Spark as given and replayed, and a sample cut in other ways; one session."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kaflow_engine.testing.case_cuts import Cuts
from kaflow_engine.testing.case_files import find_cases, load_cases
from kaflow_engine.testing.case_pipeline import Surroundings
from kaflow_engine.testing.case_report import report_lines
from kaflow_engine.testing.case_specs import Case
from kaflow_engine.testing.cases import run_case

if TYPE_CHECKING:
    from kaflow_engine.runtime.case_executor import SparkExecutor

pytestmark = pytest.mark.spark

FOLDER = Path(__file__).parent / "cases"
AROUND = Surroundings(variables={})
CASES = [
    pytest.param(case, id=f"{file.stem}: {case.name}")
    for file in find_cases([FOLDER])
    for case in load_cases(file, {})
]


@pytest.fixture(scope="module")
def executor(spark) -> "Iterator[SparkExecutor]":
    from kaflow_engine.runtime.case_executor import SparkExecutor  # it imports Spark

    running = SparkExecutor(spark)
    yield running
    running.close()


def check(case: Case, executor: "SparkExecutor", cuts: str, *, replay: bool) -> None:
    result = run_case(case, executor, cuts=Cuts.of(cuts), replay=replay, around=AROUND)
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.parametrize("case", CASES)
def test_as_given_and_replayed(case: Case, executor) -> None:
    check(case, executor, "given", replay=True)

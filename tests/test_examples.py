"""The example project, which is documentation too: it loads, and its cases pass."""

from pathlib import Path

import pytest

from kaflow_engine.model.project import load_project
from kaflow_engine.runtime.planning.prepare import check
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.cuts import Cuts
from kaflow_engine.testing.cases.executor import executor_called
from kaflow_engine.testing.cases.files import find_cases, load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings

EXAMPLES = Path(__file__).parent.parent / "dbt_style_models"
CASES = [case for file in find_cases([EXAMPLES]) for case in load_cases(file)]


def test_every_pipeline_has_a_case():
    project = load_project([EXAMPLES], variables={})
    check(project.pipelines)
    names = {getattr(case.pipeline, "text", None) for case in CASES}
    assert names == {spec.name for spec in project.pipelines}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case):
    around = Surroundings(variables={})
    result = run_case(
        case, executor_called("local"), cuts=Cuts.of("all"), replay=True, around=around
    )
    assert result.passed

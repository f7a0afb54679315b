"""The page about plugins: its examples are plugins that keep the laws, and pipelines that run."""

import json
import sqlite3
import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaflow_engine.connectors.contract import FinishedBatch, Output, TaskPart
from kaflow_engine.errors import ModelError
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.measures import Measures
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.plugins.installed import FORMATS, PREPROCESSORS, SIDE_OUTPUTS, TRANSFORMS
from kaflow_engine.runtime.tasks.side_outputs import OpenSideOutputs
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from kaflow_engine.testing.format_laws import *  # noqa: F403
from kaflow_engine.testing.format_laws import FormatSubject
from kaflow_engine.testing.sink_laws import OURS, rows_of
from kaflow_engine.testing.transform_laws import TransformSubject
from tests.conftest import OfferPlugins
from tests.page import blocks

MODULE = "acme_of_the_page"
CODE = blocks("python", "plugins.md")
PIPELINES = blocks("yaml", "plugins.md")


def containing(text: str, found: list[str]) -> str:
    """Return the one block with a text."""
    (block,) = (each for each in found if text in each)
    return block


@pytest.fixture(autouse=True)
def page(offer_plugins: OfferPlugins, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Install what the page shows."""
    module = ModuleType(MODULE)
    for block in CODE:
        exec(compile(block, "plugins.md", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, MODULE, module)
    offer_plugins(
        {
            FORMATS: {"acme.packed": f"{MODULE}:Packed"},
            PREPROCESSORS: {"acme.names": f"{MODULE}:Names"},
            SIDE_OUTPUTS: {"acme.samples": f"{MODULE}:Samples"},
            TRANSFORMS: {"acme.records": f"{MODULE}:Records"},
        }
    )
    return module


@pytest.fixture
def subject(page: ModuleType) -> FormatSubject:
    return FormatSubject(
        plugin=page.Packed(),
        columns={"id": "BIGINT", "celsius": "DOUBLE"},
        rows=pa.table({"id": [1, 2], "celsius": [20.5, -1.0]}),
        bad=b"too short",
    )


FORMAT_CASE = """\
- case: the format of the page
  pipeline: p.yaml
  given:
    - {topic: readings, at: 0, value: {id: 1, celsius: 20.5}}
    - {topic: readings, at: 1, value: {id: 2, celsius: 3.0}}
    - {topic: readings, at: 2, raw: "bad"}
  expect:
    - {key: "1", value: {id: 1, celsius: 20.5}}
  expect_dead_letters: [{topic: readings, partition: 0, offset: 2, phase: decode}]
"""


def test_the_pipeline_of_the_format_runs(tmp_path: Path) -> None:
    tmp_path.joinpath("p.yaml").write_text(containing("format: acme.packed", PIPELINES))
    path = tmp_path / "cases.yaml"
    path.write_text(FORMAT_CASE)
    (case,) = load_cases(path, {})
    result = run_case(case, LocalExecutor(), around=Surroundings(variables={}))
    assert result.passed, report_lines(result)


def test_the_preprocessor_rewrites_the_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kaflow.yaml").write_text(containing("preprocessors:", PIPELINES))
    config, pipeline = load_config(Path("kaflow.yaml"), {}), containing("<<orders>>", PIPELINES)
    Path("large.yaml").write_text(pipeline)
    (found,) = load_checked([Path("large.yaml")], config).pipelines
    assert [*found.topics] == ["shop.orders_v2"]
    for wrong, error in (
        (("id, amount", "id, amout"), "large.yaml:2 (rewritten by acme.names): unknown column"),
        (("<<orders>>:", "<<other>>:"), "large.yaml:5: no name 'other'"),
    ):
        Path("large.yaml").write_text(pipeline.replace(*wrong))
        with pytest.raises(ModelError) as caught:
            load_checked([Path("large.yaml")], config)
        assert str(caught.value).startswith(error)


def test_the_side_output_keeps_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("samples").mkdir()
    Path("p.yaml").write_text(containing("side_outputs:", PIPELINES))
    spec = load_pipeline(Path("p.yaml"), {})
    columns = declared_columns(spec, "orders")
    assert columns is not None
    flow = build_plan(spec, Config(), {"orders": columns}).plan
    value = b'{"id": 1, "amount": 2.5}'
    rows = [{"topic": "paid_orders", "key": b"1", "value": value, "kind": 0}] * 12
    (note,) = OpenSideOutputs().show(
        flow, pa.Table.from_pylist(rows, schema=OUTPUT), 4, lambda _, __: {}, Measures()
    )
    assert "error" not in note["side_output"]
    kept = pq.ParquetFile("samples/paid_orders-4.parquet").read()
    assert kept.select(["id", "amount"]).to_pylist() == [{"id": 1, "amount": 2.5}] * 10


def test_the_transform_learns(page: ModuleType) -> None:
    found = TransformSubject(
        kind=page.Records(),
        options={"column": "amount"},
        columns={"amount": "DOUBLE"},
        rows=pa.table({"amount": [3.0, 9.0, 5.0]}),
        state={"most": 4.0},
    )
    made = found.transformed(found.rows)
    assert made.rows["is_record"].to_pylist() == [False, True, True]
    assert found.state_after(found.rows) == {"most": 9.0}


def test_the_sink_with_hooks_has_each_row_once(page: ModuleType, tmp_path: Path) -> None:
    output = Output(
        name="acme.ledger:rows",
        place="acme.ledger:rows",
        columns=(Column("n", "BIGINT"),),
        settings={"file": str(tmp_path / "rows.db")},
    )
    for number in (1, 2, 2, 3):  # each by a run of its own
        outlet = page.Ledger().outlet
        written = outlet.task(output, OURS).write(
            TaskPart(rows=rows_of([number, number * 10]), batch=number, epoch=1)
        )
        sink = outlet.open(output, rows_of([]).schema, OURS, None)
        sink.commit(FinishedBatch(number=number, mark="m", notes=written.notes))
        sink.finalized(number)
        sink.ended()
    with sqlite3.connect(tmp_path / "rows.db") as file:
        rows = [json.loads(row)["n"] for (row,) in file.execute("SELECT row FROM rows")]
        epochs = file.execute("SELECT * FROM epochs").fetchall()
    assert rows == [1, 10, 2, 20, 3, 30]
    assert epochs == [("s-1", 3, 3)]

"""Side outputs of packages: what planning says of them, which rows they see, and what they stop."""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from kaflow_engine.api.side_outputs import GivenSideOutput, SeenRows
from kaflow_engine.duck.queries import value
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.flow.sinks import SideOutput
from kaflow_engine.measures import Measure, Measures, Series
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.operators.rows.row_text import pack, to_text
from kaflow_engine.plan.evolution.chain import document_mark
from kaflow_engine.plan.evolution.diff import obstacles
from kaflow_engine.plan.evolution.evolution import inherit
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain
from kaflow_engine.plan.planner.pipeline_plan import build_plan, check_pipeline, declared_columns
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.plugins.installed import SIDE_OUTPUTS, SINKS
from kaflow_engine.runtime.batch.task_metrics import side_output_errors, side_outputs
from kaflow_engine.runtime.planning.plan_codec import made_lenient, plan_of, plan_text
from kaflow_engine.runtime.tasks.side_outputs import OpenSideOutputs
from kaflow_engine.telemetry.progress import SideOutputCount
from tests.conftest import OfferPlugins

FIXTURES = Path(__file__).parents[2] / "fixtures"
HERE = "tests.engine.plugins.test_side_outputs"
FOUND = yaml.safe_load((FIXTURES / "errors" / "side_outputs.yaml").read_text())
ROWS = [pytest.param(row, id=row["title"]) for row in FOUND]


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")

    file: str


class Audit:
    """Keeps what it sees."""

    options = Options
    seen: list[tuple[GivenSideOutput, SeenRows]] = []  # noqa: RUF012
    opened = 0

    def open(self, given: GivenSideOutput) -> Any:
        if Options.model_validate(given.options).file == "away":
            raise OSError("no disk")
        Audit.opened += 1

        def see(seen: SeenRows) -> None:
            given.metrics.count("rows", seen.rows.num_rows, output=given.output)
            Audit.seen.append((given, seen))

        return see


class Other:
    options = Options


@pytest.fixture(autouse=True)
def installed(offer_plugins: OfferPlugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = {"audit": "Audit", "other": "Other"}
    here = {f"acme.{name}": f"{HERE}:{each}" for name, each in classes.items()}
    offer_plugins({SIDE_OUTPUTS: here, SINKS: {"zig.zag": "x:y"}})
    monkeypatch.setattr(Audit, "seen", [])
    monkeypatch.setattr(Audit, "opened", 0)
    monkeypatch.chdir(tmp_path)


def written(side: object, output: str = "topic: o", query: str = "SELECT id, name FROM a") -> Any:
    lines = "".join(
        f"    - {yaml.safe_dump(each, default_flow_style=True, width=999).strip()}\n"
        for each in (side if isinstance(side, list) else [side])  # pyright: ignore
    )
    Path("p.yaml").write_text(
        f"name: p\nquery: {query}\noutput:\n  {output}\n  side_outputs:\n{lines}"
        "topics: {a: {columns: {id: BIGINT, name: VARCHAR}}}\n"
    )
    return load_pipeline(Path("p.yaml"), {})


def planned(spec: Any) -> Flow:
    columns = declared_columns(spec, "a")
    assert columns is not None
    return build_plan(spec, Config(), {"a": columns}).plan


AUDIT = {"type": "acme.audit", "options": {"file": "x"}}


@pytest.mark.parametrize("row", ROWS)
def test_mistakes(row: Mapping[str, Any]) -> None:
    with pytest.raises(KaflowError) as caught:
        check_pipeline(written(row["side_outputs"]), Config())
    assert str(caught.value) == row["error"].replace("HERE", HERE)


def test_a_plan_names_it_and_no_state_depends_on_it() -> None:
    spec = written(AUDIT)
    flow = planned(spec)
    said = SideOutput(target="o", plugin="acme.audit", options=(("file", "x"),))
    assert flow.side_outputs == (said,)
    assert plan_of(plan_text(flow)) == flow
    assert "seen by" in (text := "\n".join(draw(explain(spec, Config(), {}))))
    assert "acme.audit, file: x: at least once, before rows leave" in text
    assert explain(spec, Config(), {}).data()["outputs"][0]["side_outputs"] == (str(said),)
    Path("p.yaml").write_text(Path("p.yaml").read_text().replace("file: x", "file: y"))
    other = planned(load_pipeline(Path("p.yaml"), {}))
    assert document_mark(other) == document_mark(flow)
    assert obstacles(flow, other) == obstacles(flow, replace(flow, side_outputs=())) == ()
    assert inherit(flow, other) == other
    assert made_lenient(flow, other) == other


def leaving(flow: Flow, *values: bytes | None) -> pa.Table:
    """Return rows of schema OUTPUT for the one sink of a flow."""
    (sink,) = flow.sinks
    rows = [
        {"topic": sink.target, "value": value, "key": b"k", "timestamp": 5, "kind": 0}
        for value in values
    ]
    dead = {"topic": "dead", "value": b"{}", "kind": 1}
    return pa.Table.from_pylist([*rows, dead], schema=OUTPUT)


def shown(
    flow: Flow,
    rows: pa.Table,
    opened: OpenSideOutputs | None = None,
    measures: Measures | None = None,
) -> list[Mapping[str, Any]]:
    opened, measures = opened or OpenSideOutputs(), measures or Measures()
    return list(opened.show(flow, rows, 7, lambda plugin, name: {"of": plugin + name}, measures))


def test_records_are_seen_as_columns() -> None:
    flow = planned(written(AUDIT, "topic: o\n  key: id"))
    notes = shown(flow, leaving(flow, b'{"id": 1, "name": "a"}', None, b'{"id": 2}'))
    assert notes == [{"side_output": {"output": "o", "plugin": "acme.audit", "rows": 3}}]
    ((given, seen),) = Audit.seen
    assert (given.output, given.columns) == ("o", {"id": "BIGINT", "name": "VARCHAR"})
    assert (given.settings, seen.batch) == ({"of": "acme.audit"}, 7)
    assert seen.rows.select(["id", "name", "$key", "$deleted", "$event_time"]).to_pylist() == [
        {"id": 1, "name": "a", "$key": b"k", "$deleted": False, "$event_time": 5},
        {"id": None, "name": None, "$key": b"k", "$deleted": True, "$event_time": 5},
        {"id": 2, "name": None, "$key": b"k", "$deleted": False, "$event_time": 5},
    ]


@pytest.mark.parametrize("output", ["type: blackhole", "table: t"])
def test_rows_of_other_sinks_are_seen_as_columns(output: str) -> None:
    flow = planned(written(AUDIT, output))
    text = pack(to_text(sql, kind) for sql, kind in (("3", "BIGINT"), ("'b'", "VARCHAR")))
    packed = value(f"SELECT {text}")
    notes = shown(flow, leaving(flow, packed.encode(), None))
    assert [note["side_output"].get("error") for note in notes] == [None]
    ((_, seen),) = Audit.seen
    assert seen.rows.select(["id", "name", "$deleted"]).to_pylist() == [
        {"id": 3, "name": "b", "$deleted": False},
        {"id": None, "name": None, "$deleted": True},
    ]


def test_one_that_fails_stops_no_other_and_is_counted() -> None:
    away = {"type": "acme.audit", "options": {"file": "away"}}
    flow = planned(written([away, AUDIT]))
    notes = shown(flow, leaving(flow, b'{"id": 1}', b'{"id": 2}'))
    assert [note["side_output"].get("error") for note in notes] == ["OSError: no disk", None]
    assert len(Audit.seen) == 1
    report = BatchReport(notes=(*notes, {"rows": {}}, *notes[:1]))
    count = SideOutputCount(output="o", plugin="acme.audit", rows=6, missed=4)
    assert side_outputs((), report) == (count,)
    assert side_outputs((count,), BatchReport(notes=tuple(notes[1:])))[0].rows == 8
    assert [*side_output_errors(report)] == [
        "side output 'acme.audit' of 'o' failed on 4 rows: OSError: no disk"
    ]


def test_nothing_is_opened_for_no_rows() -> None:
    flow = planned(written(AUDIT))
    assert shown(flow, leaving(flow)) == []
    assert Audit.seen == []


def test_it_is_opened_once_in_a_process() -> None:
    flow, opened, measures = planned(written(AUDIT)), OpenSideOutputs(), Measures()
    for _ in range(3):
        shown(flow, leaving(flow, b'{"id": 1}', b'{"id": 2}'), opened, measures)
    assert (Audit.opened, len(Audit.seen)) == (1, 3)
    rows = Series("count", "plugin_acme_audit_rows", (("output", "o"),))
    assert measures.taken() == {rows: Measure(6, 3)}
    shown(flow, leaving(flow, b'{"id": 1}'), pickle.loads(pickle.dumps(opened)))
    assert Audit.opened == 2


def test_a_model_as_in_dbt_names_it() -> None:
    Path("models").mkdir()
    Path("models/o.sql").write_text(
        "{{ config(side_outputs=[{'type': 'acme.audit', 'options': {'file': 'x'}}]) }}\n"
        "SELECT id, name FROM {{ source('s', 'a') }}\n"
    )
    Path("models/s.yml").write_text(
        "sources: [{name: s, tables: [{name: a, columns: [{name: id, data_type: BIGINT}, "
        "{name: name, data_type: VARCHAR}]}]}]\n"
    )
    (spec,) = load_checked([Path("models")], Config()).pipelines
    assert [str(each) for each in planned(spec).side_outputs] == ["acme.audit, file: x"]

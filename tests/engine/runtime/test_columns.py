"""Columns of sources that declare none, as a start finds them."""

from pathlib import Path
from typing import Any

import pytest

from kaflow_engine.errors import Location, SourceError, SourceUnfit
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.columns import resolve_columns
from kaflow_engine.runtime.planning.prepare import plan_pipeline


def spec(path: Path, **more: Any) -> PipelineSpec:
    said = {"type": "files", "path": str(path), "format": "json", **more}
    file = {"name": "p", "query": "SELECT a, b FROM s", "output": {"topic": "o"}}
    return pipeline_from_mapping({**file, "sources": {"s": said}}, Location("p.yaml", 1), {})


def test_first_records_show_columns_and_no_broker_is_asked(tmp_path: Path) -> None:
    (tmp_path / "1").write_text('{"a": 1, "b": "x"}\n{"a": 2.5}\n')
    found = resolve_columns(spec(tmp_path), Config(), ["s"])
    assert found == {"s": (Column("a", "DOUBLE"), Column("b", "VARCHAR"))}
    planned = plan_pipeline(spec(tmp_path), Config())
    assert planned.plan.sources[0].columns == found["s"]


def test_there_is_no_record_yet_or_no_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as raised:
        resolve_columns(spec(tmp_path), Config(), ["s"])
    assert str(raised.value) == (
        "p.yaml:1: source 's' has no record yet, so its columns are not known\n"
        "  hint: declare sources.s.columns, or start again when it has a first record"
    )
    with pytest.raises(SourceUnfit, match=r"p\.yaml:1: there is no folder '/nowhere'"):
        resolve_columns(spec(Path("/nowhere")), Config(), ["s"])

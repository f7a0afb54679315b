"""Formats of packages: what planning says of them, and what becomes of values and rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pydantic import BaseModel

from kaflow_engine.api.formats import DecodedRows, EncodedValues, SinkUnfit, SourceUnfit
from kaflow_engine.errors import KaflowError, ModelError
from kaflow_engine.formats.contract import Evidence, format_of, no_schema
from kaflow_engine.formats.decoded import Decoded
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.formats import with_options
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline
from kaflow_engine.plugins.installed import FORMATS, SINKS
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from tests.conftest import OfferPlugins

FIXTURES = Path(__file__).parents[2] / "fixtures"
HERE = "tests.engine.formats.test_plugin_format"
FOUND = yaml.safe_load((FIXTURES / "errors" / "format_plugins.yaml").read_text())
ROWS = [pytest.param(row, id=row["title"]) for row in FOUND]


class Lines:
    """A value is `name=text` on each of its lines."""

    calls: list[int] = []  # noqa: RUF012

    def columns(self, sample: Sequence[bytes]) -> Mapping[str, str] | None:
        return {name: "VARCHAR" for value in sample for name in _cells(value)}

    def unfit(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        if "failing" in columns:
            raise ValueError("not today")
        return {name: "it has parts" for name, kind in columns.items() if kind.endswith("[]")}

    def decode(self, values: pa.Array, columns: Mapping[str, str]) -> DecodedRows:
        Lines.calls.append(len(values))
        texts = values.to_pylist()
        if texts[0] in BROKEN:
            return BROKEN[texts[0]]
        failures = {at: "it is bad" for at, text in enumerate(texts) if text == b"bad"}
        cells = [_cells(text) for at, text in enumerate(texts) if at not in failures]
        rows = {name: pa.array([row.get(name) for row in cells], pa.string()) for name in columns}
        return DecodedRows(rows=pa.table(rows), failures=failures)

    def encode(self, rows: pa.Table, columns: Mapping[str, str]) -> EncodedValues:
        found = rows.to_pylist()
        first = str(found[0].get("name"))
        if first in WRONG:
            return WRONG[first]
        if any(row.get("name") == "raised" for row in found):
            raise ValueError("broken")
        failures = {at: "it is bad" for at, row in enumerate(found) if row.get("name") == "bad"}
        lines = (
            "\n".join(f"{name}={cell}" for name, cell in row.items() if cell is not None)
            for row in found
        )
        return EncodedValues(
            values=pa.array([line.encode() or None for line in lines], pa.binary()),
            failures=failures,
        )


class Cells(Lines):
    positional = True


class Unmade:
    """Makes no format of its options."""

    class options(BaseModel):
        pass

    def with_options(self, options: BaseModel) -> Any:
        return options


class Raising(Unmade):
    """Cannot be made."""

    def with_options(self, options: BaseModel) -> Any:
        raise ValueError("not today")


class Without:
    """Takes options, and does not say which."""

    def with_options(self, options: BaseModel) -> Any:
        return options


class Other:
    pass


def _cells(value: bytes) -> Mapping[str, str]:
    return dict(line.split("=", 1) for line in value.decode().splitlines())  # pyright: ignore


BROKEN: dict[bytes, Any] = {
    b"no column": DecodedRows(rows=pa.table({"id": ["1"]})),
    b"too few": DecodedRows(rows=pa.table({"id": pa.nulls(0), "name": pa.nulls(0)})),
    b"elsewhere": DecodedRows(rows=pa.table({"id": ["1"], "name": ["a"]}), failures={1: "x"}),
    b"no cast": DecodedRows(rows=pa.table({"id": pa.array([None], pa.float16()), "name": ["a"]})),
    b"nothing": None,
}
WRONG: dict[str, Any] = {
    "too few": EncodedValues(values=pa.array([], pa.binary())),
    "text": EncodedValues(values=pa.array(["x"])),
    "nothing": None,
}
COLUMNS = (Column("id", "BIGINT"), Column("name", "VARCHAR"))


@pytest.fixture(autouse=True)
def installed(
    offer_plugins: OfferPlugins, frozen_plugins: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes = {"lines": "Lines", "cells": "Cells", "other": "Other"}
    here = {f"acme.{name}": f"{HERE}:{each}" for name, each in classes.items()}
    here |= {f"acme.{each.lower()}": f"{HERE}:{each}" for each in ("Unmade", "Raising", "Without")}
    here["acme.cut"] = "frozen_2.cut:Cut"
    offer_plugins({FORMATS: here, SINKS: {"zig.zag": "x:y"}})
    monkeypatch.setattr(Lines, "calls", [])


@pytest.mark.parametrize("row", ROWS)
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]) -> None:
    monkeypatch.chdir(tmp_path)
    said = {"output": {"topic": "o"}, "topic": {"columns": {"id": "BIGINT"}}, **row}
    output, topic = (
        yaml.safe_dump(said[part], default_flow_style=True, width=999, sort_keys=False).strip()
        for part in ("output", "topic")
    )
    query = row.get("query", "SELECT id FROM a")
    Path("p.yaml").write_text(
        f"name: p\nquery: {query}\noutput: {output}\ntopics: {{a: {topic}}}\n"
    )
    with pytest.raises(KaflowError) as caught:
        check_pipeline(load_pipeline(Path("p.yaml"), {}), Config())
    assert str(caught.value) == row["error"].replace("HERE", HERE)


def decoded(*values: bytes, columns: Sequence[Column] = COLUMNS) -> Decoded:
    return format_of("acme.lines").decode(pa.array(values, pa.binary()), columns, no_schema)


def test_values_that_are_bad_or_do_not_fit_or_on_which_it_raises_are_found() -> None:
    good = b"id=1\nname=a"
    found = decoded(*[good] * 9, b"raises", b"bad", b"id=x", *[good] * 20, b"name=b")
    assert [(one.row, one.error, one.message) for one in found.bad] == [
        (
            9,
            "PluginError",
            "ValueError: dictionary update sequence element #0 has length 1; 2 is required",
        ),
        (10, "PluginError", "it is bad"),
        (11, "DoesNotFit", "column 'id' does not fit BIGINT"),
    ]
    assert found.good.to_pylist() == [*range(9), *range(12, 33)]
    assert found.table.to_pylist() == [{"id": 1, "name": "a"}] * 29 + [{"id": None, "name": "b"}]
    assert len(Lines.calls) < 33


CUT_CASE = """\
- case: two signs
  pipeline:
    name: p
    query: SELECT id, name FROM t WHERE id > 1
    output: {topic: o, key: id, format: acme.cut, format_options: {sign: "|"}}
    topics: {t: {format: acme.cut, columns: {id: BIGINT, name: VARCHAR}}}
  given:
    - {topic: t, at: 0, raw: "1;a"}
    - {topic: t, at: 1, raw: "2;b"}
    - {topic: t, at: 2, raw: "3|c"}
  expect: [{key: "2", value: {id: 2, name: b}}]
  expect_dead_letters: [{topic: t, partition: 0, offset: 2, phase: decode}]
"""


def test_a_format_is_as_its_options_say(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(CUT_CASE)
    (case,) = load_cases(path, {})
    result = run_case(case, LocalExecutor(), around=Surroundings(variables={}))
    assert result.passed, report_lines(result)
    named = with_options("acme.cut", {"sign": "|"})
    rows = pa.table({"id": pa.array([2], pa.int64()), "name": ["b"]})
    assert format_of(named).encoder(COLUMNS, None).encode(rows).values == [b"2|b"]
    assert format_of(named).traits.title == "acme.cut"


def test_no_columns_are_asked_for() -> None:
    found = decoded(b"id=1", b"bad", b"id=2", columns=())
    assert (found.table.column_names, found.good.to_pylist()) == ([], [0, 2])


def test_nothing_is_decoded_or_encoded_without_a_call() -> None:
    assert decoded().table.column_names == ["id", "name"]
    none = pa.table({"id": pa.nulls(0, pa.int64()), "name": pa.nulls(0, pa.string())})
    assert format_of("acme.lines").encoder(COLUMNS, None).encode(none).values == []
    assert Lines.calls == []


def test_columns_are_found_in_values() -> None:
    form = format_of("acme.lines")
    some = Evidence(sample=lambda: [b"id=1", b"name=a"], schema=lambda: None)
    assert form.columns(some) == (Column("id", "VARCHAR"), Column("name", "VARCHAR"))
    assert form.columns(Evidence(sample=lambda: [], schema=lambda: None)) is None
    with pytest.raises(ModelError, match="does not tell the columns of its values"):
        form.columns(Evidence(sample=lambda: [b""], schema=lambda: None))


def test_rows_that_are_bad_or_on_which_it_raises_are_found() -> None:
    names = ["a", "raised", "b", "bad", None]
    ids = [1, 2, 3, 4, None]
    rows = pa.table({"id": ids, "name": names})
    found = format_of("acme.lines").encoder(COLUMNS, None).encode(rows)
    assert found.values == [b"id=1\nname=a", None, b"id=3\nname=b", None, None]
    assert [(one.row, one.message) for one in found.bad] == [
        (1, "ValueError: broken"),
        (3, "it is bad"),
        (4, "the plugin gives no value"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"no column", "gives no column 'name'"),
        (b"too few", "gives 0 rows of 1 values, of which 0 are bad"),
        (b"elsewhere", "fails on a place that it was not given"),
        (b"no cast", "gives columns that cannot be cast to BIGINT, VARCHAR"),
        (b"nothing", "gives a NoneType, not DecodedRows"),
    ],
)
def test_what_it_must_not_decode(value: bytes, text: str) -> None:
    with pytest.raises(SourceUnfit) as caught:
        decoded(value)
    hint = "correct the plugin: see DecodedRows of kaflow_engine.api.formats"
    assert str(caught.value) == f"plugin 'acme.lines' {text}\n  hint: {hint}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("too few", "gives 0 values of 1 rows"),
        ("text", "gives values of the type string, not binary"),
        ("nothing", "gives a NoneType, not EncodedValues"),
    ],
)
def test_what_it_must_not_encode(name: str, text: str) -> None:
    rows = pa.table({"id": [1], "name": [name]})
    with pytest.raises(SinkUnfit) as caught:
        format_of("acme.lines").encoder(COLUMNS, None).encode(rows)
    hint = "correct the plugin: see EncodedValues of kaflow_engine.api.formats"
    assert str(caught.value) == f"plugin 'acme.lines' {text}\n  hint: {hint}"


CASE = """\
- case: a format of a package
  pipeline:
    name: f
    query: SELECT id, name FROM a
    topics: {a: {format: acme.lines, columns: {id: BIGINT, name: VARCHAR}}}
    output: {topic: out, key: id, format: acme.lines}
  given:
    - {topic: a, at: 0, value: {id: 1, name: x}}
    - {topic: a, at: 1, raw: "bad"}
    - {topic: a, at: 2, raw: "id=2"}
    - {topic: a, at: 3, raw: "id=3\\nname=raised"}
  expect:
    - {key: "1", value: {id: 1, name: x}}
    - {key: "2", value: {id: 2, name: null}}
  expect_raw: ["id=1\\nname=x", "id=2"]
  expect_dead_letters:
    - {topic: a, partition: 0, offset: 1, phase: decode}
    - {topic: a, partition: 0, offset: 3, phase: encode}
"""


def test_a_pipeline_reads_and_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(CASE)
    (case,) = load_cases(path, {})
    result = run_case(case, LocalExecutor(), around=Surroundings(variables={}))
    assert result.passed, report_lines(result)

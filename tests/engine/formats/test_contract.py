"""The laws of a format, over every format of the table and a made-up one."""

from pathlib import Path

import pyarrow as pa
import pytest

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import Problems, UnknownName
from kaflow_engine.formats.contract import Evidence, Format, IdSchema, format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.formats import FORMATS
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from tests.engine.formats.pairs_here import TARGET

COLUMNS = (Column("id", "VARCHAR"), Column("n", "BIGINT"))
ROWS = pa.table({"id": ["a", None, "ü"], "n": pa.array([1, -(2**40), None], pa.int64())})
NAMES = sorted({*FORMATS, "pairs"})


@pytest.fixture(autouse=True)
def pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "pairs", TARGET)


@pytest.fixture(params=NAMES)
def form(request: pytest.FixtureRequest) -> Format:
    return format_of(request.param)


def schema_for(form: Format) -> IdSchema | None:
    text = form.schema_of(COLUMNS, "Value")
    return None if text is None else IdSchema(7, text)


def by_id(form: Format, number: int) -> str:
    schema = schema_for(form)
    assert schema is not None
    assert number == schema.id
    return schema.text


def values_of(form: Format) -> pa.Array:
    encoded = form.encoder(COLUMNS, schema_for(form)).encode(ROWS)
    assert encoded.bad == ()
    return encoded.array


def test_what_was_encoded_is_decoded(form: Format) -> None:
    decoded = form.decode(values_of(form), COLUMNS, lambda number: by_id(form, number))
    assert decoded.bad == ()
    assert decoded.table.to_pylist() == ROWS.to_pylist()
    assert decoded.table.column_names == ["id", "n"]


def test_a_bad_value_harms_no_other(form: Format) -> None:
    good = values_of(form).to_pylist()
    mixed = pa.array([good[0], b"\xff\xfe", good[1], b"", good[2]], pa.binary())
    decoded = form.decode(mixed, COLUMNS, lambda number: by_id(form, number))
    assert decoded.good.to_pylist() == [0, 2, 4]
    assert [bad.row for bad in decoded.bad] == [1, 3]
    assert all(bad.error and bad.message for bad in decoded.bad)
    assert decoded.table.to_pylist() == ROWS.to_pylist()


def test_columns_that_were_not_asked_for_are_left_out(form: Format) -> None:
    decoded = form.decode(values_of(form), COLUMNS[1:], lambda number: by_id(form, number))
    assert decoded.table.to_pylist() == [{"n": n} for n in ROWS["n"].to_pylist()]


def test_no_values_are_no_rows(form: Format) -> None:
    decoded = form.decode(pa.array([], pa.binary()), COLUMNS, lambda number: by_id(form, number))
    assert (decoded.table.num_rows, decoded.bad) == (0, ())
    assert decoded.table.column_names == ["id", "n"]


def test_sql_writes_what_encode_writes(form: Format) -> None:
    encoder = form.encoder(COLUMNS, schema_for(form))
    sql = encoder.sql({column.name: identifier(column.name) for column in COLUMNS})
    if sql is None:
        assert len(encoder.encode(ROWS).array) == ROWS.num_rows
        return
    written = query(f"SELECT encode({sql}) AS v FROM rows", ROWS).column("v").to_pylist()
    assert written == values_of(form).to_pylist()


def test_columns_are_learned_from_a_schema_or_from_values(form: Format) -> None:
    asked: list[str] = []

    def sample() -> list[bytes]:
        asked.append("sample")
        return values_of(form).to_pylist()[:1]

    def schema() -> str | None:
        asked.append("schema")
        return form.schema_of(COLUMNS, "Value")

    columns = form.columns(Evidence(sample=sample, schema=schema))
    assert columns is not None
    assert [column.name for column in columns] == ["id", "n"]
    assert asked == ["schema" if form.traits.registered else "sample"]


def test_nothing_to_learn_from_gives_no_columns(form: Format) -> None:
    assert not form.columns(Evidence(sample=lambda: (), schema=lambda: None))


def test_a_schema_is_there_if_and_only_if_schemas_are_registered(form: Format) -> None:
    assert (form.schema_of(COLUMNS, "Value") is not None) == form.traits.registered


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(UnknownName, match="unknown format 'xml'") as caught:
        format_of("xml")
    assert caught.value.hint == "known: avro, json, pairs"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("output: {topic: o, format: xml}", "p.yaml:3: unknown output.format 'xml'"),
        (
            "output: {topic: o}\ntopics: {a: {format: xml}}",
            "p.yaml:4: unknown topics.a.format 'xml'",
        ),
    ],
)
def test_a_file_with_an_unknown_format_lists_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(f"name: p\nquery: SELECT id FROM a\n{text}\n")
    with pytest.raises((UnknownName, Problems)) as caught:
        load_pipeline(Path("p.yaml"), {})
    assert str(caught.value) == f"{message}\n  hint: known: avro, json, pairs"


CASE = """\
- case: a made-up format
  pipeline:
    name: f
    query: SELECT id, n + 1 AS n FROM a
    topics: {a: {format: pairs}}
    output: {topic: out, key: id, format: pairs}
  topics: {a: {id: VARCHAR, n: BIGINT}}
  given:
    - {topic: a, at: 0, value: {id: x, n: 1}}
    - {topic: a, at: 1, raw: "nothing"}
    - {topic: a, at: 2, raw: "n=2;id=y"}
    - {topic: a, at: 3, value: {id: z}}
  expect:
    - {key: x, value: {id: x, n: 2}}
    - {key: y, value: {id: y, n: 3}}
    - {key: z, value: {id: z, n: null}}
  expect_raw: ["id=x;n=2", "id=y;n=3", "id=z"]
  expect_dead_letters: [{topic: a, partition: 0, offset: 1, phase: decode}]
"""


def test_a_row_of_the_table_is_all_that_a_pipeline_needs(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(CASE)
    (case,) = load_cases(path, {})
    result = run_case(case, LocalExecutor(), around=Surroundings(variables={}))
    assert result.passed, report_lines(result)

"""The laws of a format, over every format of the table and a made-up one."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import ModelError, Problems, UnknownName
from kaflow_engine.formats.contract import Evidence, Format, IdSchema, format_of
from kaflow_engine.formats.decoded import Decoded
from kaflow_engine.model.columns import Column
from kaflow_engine.model.formats import FORMATS, WITH_FIELDS, WITH_SCHEMA
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from tests.engine.formats.pairs_here import TARGET

NAMES = sorted({*FORMATS, "pairs"})


class Sample(NamedTuple):
    """Rows of a format, and values that are none."""

    columns: tuple[Column, ...]
    rows: pa.Table
    bad: tuple[bytes, bytes] = (b"\xff\xfe", b"")


TWO = Sample(
    (Column("id", "VARCHAR"), Column("n", "BIGINT")),
    pa.table({"id": ["a", None, "ü"], "n": pa.array([1, -(2**40), None], pa.int64())}),
)
ONE = Sample((Column("value", "VARCHAR"),), pa.table({"value": ["a", "", "ü"]}), (b"\xff", b"\xfe"))
SAMPLES: Mapping[str, Sample] = {"raw": ONE}
"""What is not TWO."""


@pytest.fixture(autouse=True)
def pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FORMATS, "pairs", TARGET)


class Given(NamedTuple):
    """A format, and what the laws are tried with."""

    form: Format
    columns: tuple[Column, ...]
    rows: pa.Table
    bad: tuple[bytes, bytes]

    def schema(self) -> IdSchema | None:
        text = self.form.schema_of(self.columns, "Value")
        return None if text is None else IdSchema(7, text)

    def by_id(self, number: int) -> str:
        schema = self.schema()
        assert schema is not None
        assert number == schema.id
        return schema.text

    def values(self) -> pa.Array:
        encoded = self.form.encoder(self.columns, self.schema()).encode(self.rows)
        assert encoded.bad == ()
        return encoded.array

    def decode(self, values: pa.Array, columns: tuple[Column, ...] | None = None) -> Decoded:
        asked = self.columns if columns is None else columns
        return self.form.decode(values, asked, self.by_id)


@pytest.fixture(params=NAMES)
def given(request: pytest.FixtureRequest) -> Given:
    sample = SAMPLES.get(request.param, TWO)
    return Given(format_of(request.param), *sample)


def test_what_was_encoded_is_decoded(given: Given) -> None:
    decoded = given.decode(given.values())
    assert decoded.bad == ()
    assert decoded.table.to_pylist() == given.rows.to_pylist()
    assert decoded.table.column_names == given.rows.column_names


def test_a_bad_value_harms_no_other(given: Given) -> None:
    good = given.values().to_pylist()
    mixed = pa.array([good[0], given.bad[0], good[1], given.bad[1], good[2]], pa.binary())
    decoded = given.decode(mixed)
    assert decoded.good.to_pylist() == [0, 2, 4]
    assert [bad.row for bad in decoded.bad] == [1, 3]
    assert all(bad.error and bad.message for bad in decoded.bad)
    assert decoded.table.to_pylist() == given.rows.to_pylist()


def test_columns_that_were_not_asked_for_are_left_out(given: Given) -> None:
    asked = given.columns if given.form.traits.positional else given.columns[1:]
    decoded = given.decode(given.values(), asked)
    rows = given.rows.select([column.name for column in asked])
    assert decoded.table.num_columns == len(asked)
    assert decoded.table.to_pylist() == rows.to_pylist()
    assert decoded.good.to_pylist() == [0, 1, 2]


def test_no_values_are_no_rows(given: Given) -> None:
    decoded = given.decode(pa.array([], pa.binary()))
    assert (decoded.table.num_rows, decoded.bad) == (0, ())
    assert decoded.table.column_names == given.rows.column_names


def test_a_slice_of_an_array_is_read(given: Given) -> None:
    decoded = given.decode(given.values().slice(1, 2))
    assert decoded.table.to_pylist() == given.rows.to_pylist()[1:]


def test_sql_writes_what_encode_writes(given: Given) -> None:
    encoder = given.form.encoder(given.columns, given.schema())
    sql = encoder.sql({column.name: identifier(column.name) for column in given.columns})
    if sql is None:
        assert len(encoder.encode(given.rows).array) == given.rows.num_rows
        return
    written = query(f"SELECT encode({sql}) AS v FROM rows", given.rows).column("v").to_pylist()
    assert written == given.values().to_pylist()


def test_columns_are_declared_or_learned_from_a_schema_or_from_values(given: Given) -> None:
    asked: list[str] = []

    def sample() -> list[bytes]:
        asked.append("sample")
        return given.values().to_pylist()[:1]

    def schema() -> str | None:
        asked.append("schema")
        return given.form.schema_of(given.columns, "Value")

    assert given.form.declared(given.columns) == given.columns
    columns = given.form.columns(Evidence(sample=sample, schema=schema))
    if columns is None:  # values do not say their types
        with pytest.raises(ModelError):
            given.form.declared(None)
        return
    assert [column.name for column in columns] == [column.name for column in given.columns]
    if given.form.declared(None) == columns:
        assert asked == []
    else:
        assert asked == ["schema" if given.form.traits.registered else "sample"]


def test_nothing_to_learn_from_gives_no_columns_but_those_that_are_always_there(
    given: Given,
) -> None:
    found = given.form.columns(Evidence(sample=lambda: (), schema=lambda: None))
    assert not found or found == given.form.declared(None)


def test_a_schema_is_there_if_and_only_if_schemas_are_registered(given: Given) -> None:
    schema = given.form.schema_of(given.columns, "Value")
    assert (schema is not None) == given.form.traits.registered


def test_the_model_knows_which_formats_have_schemas() -> None:
    assert [name for name in NAMES if format_of(name).traits.registered] == sorted(WITH_SCHEMA)
    assert set(WITH_FIELDS) <= set(WITH_SCHEMA)


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(UnknownName, match="unknown format 'orc'") as caught:
        format_of("orc")
    assert caught.value.hint == f"known: {', '.join(NAMES)}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("output: {topic: o, format: orc}", "p.yaml:3: unknown output.format 'orc'"),
        (
            "output: {topic: o}\ntopics: {a: {format: orc}}",
            "p.yaml:4: unknown topics.a.format 'orc'",
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
    assert str(caught.value) == f"{message}\n  hint: known: {', '.join(NAMES)}"


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

"""What is in files, and in the names of their folders."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaflow_engine.connectors.contract import Refused
from kaflow_engine.connectors.files.types import unfit
from kaflow_engine.duck.queries import query
from kaflow_engine.formats.contract import format_of, no_schema
from kaflow_engine.formats.types import arrow_type
from kaflow_engine.model.columns import Column
from tests.engine.connectors.files_here import Files

DAY = 86_400_000
PLAIN = {
    "BOOLEAN": "true",
    "TINYINT": "-128",
    "UTINYINT": "255",
    "SMALLINT": "-32768",
    "USMALLINT": "65535",
    "INTEGER": "-2147483648",
    "UINTEGER": "4294967295",
    "BIGINT": "9223372036854775807",
    "UBIGINT": "18446744073709551615",
    "DECIMAL(38,3)": "12345678901234567890123456789012345.678",
    "FLOAT": "1.1",
    "DOUBLE": "0.1",
    "VARCHAR": "'a,\"b\"'",
    "BLOB": "'\\x00\\xFFa'",
    "DATE": "'0044-03-15'",
    "TIME": "'23:59:59.999999'",
    "TIMESTAMP": "'1969-12-31 23:59:59.999999'",
    "TIMESTAMP_S": "'2026-01-01 00:00:01'",
    "TIMESTAMP_MS": "'2026-01-01 00:00:01.001'",
    "TIMESTAMP WITH TIME ZONE": "'2026-01-01 00:00:01.000001+02'",
    "UUID": "'00112233-4455-6677-8899-aabbccddeeff'",
    "ENUM('a', 'é')": "'é'",
}
NESTED = {
    "JSON": "'{\"a\":[1,null]}'",
    "INTEGER[]": "[1, NULL]",
    "STRUCT(a INTEGER, b VARCHAR[])": "{'a': 1, 'b': ['x', NULL]}",
    "MAP(VARCHAR, BIGINT)": "map {'a': 1}",
}


def read_all(files: Files) -> Any:
    path = f"{files.folder}/**/*.parquet"
    return duckdb.sql(f"FROM read_parquet('{path}', hive_partitioning = true)")


def test_folders_are_those_that_readers_know(tmp_path: Path) -> None:
    files = Files(
        tmp_path,
        {"n": "INTEGER", "c": "VARCHAR", "d": "DATE"},
        partition="hour",
        partition_by=["c", "d"],
    )
    rows = [
        files.rows("(1, 'a/b=c%:é', DATE '2026-01-02'), (2, NULL, NULL)", at=DAY + 3_600_000),
        files.rows("(3, 'x', DATE '2026-01-02')", slot=1),
    ]
    files.open().commit(files.batch(1, *rows))
    name = "ab12-1-0000000001-000"
    assert files.names() == [
        f"c=__HIVE_DEFAULT_PARTITION__/d=__HIVE_DEFAULT_PARTITION__/_hour=1970-01-02-01/{name}0.parquet",
        f"c=a%2Fb%3Dc%25%3Aé/d=2026-01-02/_hour=1970-01-02-01/{name}0.parquet",
        f"c=x/d=2026-01-02/_hour=1970-01-01-00/{name}1.parquet",
    ]
    found = read_all(files).order("n").project("n, c, CAST(d AS VARCHAR), _hour").fetchall()
    assert found == [
        (1, "a/b=c%:é", "2026-01-02", "1970-01-02-01"),
        (2, None, None, "1970-01-02-01"),
        (3, "x", "2026-01-02", "1970-01-01-00"),
    ]
    read = files.outlet.read(files.output, 0, 10)
    texts = query("SELECT n, c, CAST(d AS VARCHAR) AS d FROM rows ORDER BY n", read)
    assert [tuple(row.values()) for row in texts.to_pylist()] == [row[:3] for row in found]
    assert files.outlet.read(files.output, 2**62 // 1_000_000, 10).num_rows == 0


def test_rows_that_no_folder_can_be_called_by_are_refused(tmp_path: Path) -> None:
    files = Files(tmp_path, {"n": "INTEGER", "c": "VARCHAR"}, partition_by=["c"])
    long = "é" * 130
    values = f"(1, ''), (2, 'x'), (3, '{long}'), (4, '__HIVE_DEFAULT_PARTITION__'), (5, '')"
    files.open().commit(files.batch(1, files.rows(values)))
    assert [(one.row, one.error) for one in files.refused] == [
        (row, "PartitionValue") for row in (0, 2, 3, 4)
    ]
    assert files.refused[0] == Refused(
        0, "PartitionValue", "column 'c' is empty, and no folder can be called by that"
    )
    assert read_all(files).project("n, c").fetchall() == [(2, "x")]


def test_a_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    names = [f"c{n}" for n in range(9)]
    files = Files(tmp_path, {"n": "INTEGER"} | dict.fromkeys(names, "VARCHAR"), partition_by=names)
    long = ", ".join([f"'{'x' * 240}'"] * 9)
    short = ", ".join(["'x'"] * 9)
    files.open().commit(files.batch(1, files.rows(f"(1, {long}), (2, {short})")))
    assert [(one.row, one.message) for one in files.refused] == [
        (0, f"columns {', '.join(names)} have too many characters for the path of a file")
    ]
    assert len(files.names()) == 1


def values_of(files: Files, form: str) -> Iterator[Any]:
    """Yield what a reader finds, as the text of DuckDB, or NULL."""
    columns = files.output.columns
    for name in files.names():
        data = (files.folder / name).read_bytes()
        if form == "parquet":
            table = pq.ParquetFile(files.folder / name).read()
        else:
            lines = data.splitlines()
            if form == "csv":
                assert next(csv.reader([lines.pop(0).decode()])) == [c.name for c in columns]
            decoded = format_of(form).decode(pa.array(lines, pa.binary()), columns, no_schema)
            assert decoded.bad == ()
            table = decoded.table
        texts = ", ".join(f"CAST({_back(c)} AS VARCHAR)" for c in columns)
        yield from query(f"SELECT [{texts}] AS v FROM rows", table)["v"].to_pylist()


def _back(column: Column) -> str:
    """Return SQL of a value in the type that it had; Parquet keeps seconds as milliseconds."""
    name = f'"{column.name}"'
    if column.type == "TIMESTAMP_S":
        name = f"CAST({name} AS TIMESTAMP)"
    return f"CAST({name} AS {column.type})"


@pytest.mark.parametrize("form", ["parquet", "json", "csv"])
def test_a_value_of_every_type_out_and_back(tmp_path: Path, form: str) -> None:
    given = PLAIN if form == "csv" else PLAIN | NESTED
    columns = {f"c {n}": kind for n, kind in enumerate(given)}
    files = Files(tmp_path, columns, format=form)
    assert unfit(files.output.columns, files.output.settings) == []
    some = ", ".join(f"CAST({value} AS {kind})" for kind, value in given.items())
    none = ", ".join("NULL" for _ in given)
    rows = files.rows(f"({some}), ({none})")
    files.open().commit(files.batch(1, rows))
    texts = ", ".join(f'CAST("{name}" AS VARCHAR)' for name in columns)
    expected = query(f"SELECT [{texts}] AS v FROM rows", rows)["v"].to_pylist()
    found = list(values_of(files, form))
    assert found[1] == [None] * len(given)
    assert found == expected
    read = files.outlet.read(files.output, 0, 10)
    assert read.schema.names == [*columns]
    assert query(f"SELECT [{texts}] AS v FROM rows", read)["v"].to_pylist() == expected
    assert files.outlet.read(files.output, 0, 1).num_rows == 1


def test_parquet_has_the_types_of_the_columns(tmp_path: Path) -> None:
    columns = {"a": "UBIGINT", "b": "DECIMAL(9,2)", "t": "TIMESTAMP WITH TIME ZONE", "l": "DATE[]"}
    files = Files(tmp_path, columns)
    files.open().commit(files.batch(1, files.rows("(1, 1, NULL, NULL)")))
    schema = pq.ParquetFile(files.folder / files.names()[0]).schema_arrow
    assert [schema.field(name).type for name in ("a", "b", "t")] == [
        arrow_type(columns[name]) for name in ("a", "b", "t")
    ]


@pytest.mark.parametrize(
    ("form", "kind", "hint"),
    [
        ("parquet", "HUGEINT", "DECIMAL(38, 0)"),
        ("parquet", "INTERVAL", "VARCHAR"),
        ("parquet", "STRUCT(a BIT)", "VARCHAR"),
        ("parquet", "UHUGEINT[]", "VARCHAR"),
        ("parquet", "TIME WITH TIME ZONE", "VARCHAR"),
        ("csv", "INTEGER[]", "VARCHAR"),
        ("csv", "JSON", "VARCHAR"),
    ],
)
def test_types_that_files_do_not_hold(form: str, kind: str, hint: str) -> None:
    (found,) = unfit([Column("c", kind)], {"format": form})
    assert "column 'c'" in found.why
    assert hint in (found.hint or "")

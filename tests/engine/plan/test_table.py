"""Values come out of a table as they went in, whatever their type."""
# pyright: basic

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kaflow_engine.connectors.delta import DeltaSink, partition_rows
from kaflow_engine.connectors.delta_files import Replaced
from kaflow_engine.connectors.table_files import write_files
from kaflow_engine.errors import SinkError
from kaflow_engine.formats.duck import query
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.encode import pack, to_text
from kaflow_engine.operators.params import TableParams
from kaflow_engine.operators.schemas import OUTPUT
from kaflow_engine.operators.table_rows import SOURCE, is_whole, partitions_between, typed_rows
from kaflow_engine.plan.table import table_type

NOON = 1_767_268_800_000
VALUES = [
    ("true", "BOOLEAN", True),
    ("-3", "TINYINT", -3),
    ("9007199254740993", "BIGINT", 9007199254740993),
    ("18446744073709551615", "UBIGINT", Decimal(18446744073709551615)),
    ("250", "UTINYINT", 250),
    ("1.1", "DOUBLE", 1.1),
    ("'NaN'", "DOUBLE", float("nan")),
    ("12345678901234567890.12", "DECIMAL(22,2)", Decimal("12345678901234567890.12")),
    ("'a''b\"ü\n'", "VARCHAR", "a'b\"ü\n"),
    ("'\\x00\\xFF'", "BLOB", b"\x00\xff"),
    ("'2026-01-31'", "DATE", date(2026, 1, 31)),
    ("'2026-01-31 01:02:03.000004'", "TIMESTAMP", datetime(2026, 1, 31, 1, 2, 3, 4)),
    (
        "'2026-01-31 01:02:03+01'",
        "TIMESTAMP WITH TIME ZONE",
        datetime(2026, 1, 31, 0, 2, 3, tzinfo=UTC),
    ),
    (
        "'00000000-0000-0000-0000-000000000001'",
        "UUID",
        "00000000-0000-0000-0000-000000000001",
    ),
    ("[1, NULL, 3]", "UINTEGER[]", [1, None, 3]),
    ("{'a': 1, 'b c': ['x']}", 'STRUCT(a INTEGER, "b c" VARCHAR[])', {"a": 1, "b c": ["x"]}),
    ("MAP {'k': 1.5}", "MAP(VARCHAR, DOUBLE)", [("k", 1.5)]),
    ("NULL", "INTEGER", None),
    ("NULL", "STRUCT(a INTEGER)", None),
]


@pytest.mark.parametrize(("sql", "kind", "expected"), VALUES)
def test_value(tmp_path, sql, kind, expected):
    table = table_of([Column("x", table_type(kind))])
    rows = query(f"SELECT encode({pack([to_text(f'CAST({sql} AS {kind})', kind)])}) AS value")
    typed = typed_rows(table, output([rows["value"][0].as_py()]))
    sink = DeltaSink(tmp_path, typed.schema, "_day", "w")
    assert sink.add(1, write_files(tmp_path, "_day", typed, "f"))
    (row,) = DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert str(row["x"]) == str(expected)
    assert row["_event_time"] == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert row["_day"] == "2026-01-01"


@pytest.mark.parametrize("kind", ["HUGEINT", "INTERVAL", "TIME", "HUGEINT[]", "STRUCT(a BIT)"])
def test_type_that_no_table_keeps(kind):
    assert table_type(kind) is None


def test_a_batch_is_added_once(tmp_path):
    typed = numbers(1, 2)
    sink = DeltaSink(tmp_path, typed.schema, "_day", "w")
    assert sink.add(4, write_files(tmp_path, "_day", typed, "4-1"))
    again = write_files(tmp_path, "_day", typed, "4-2")
    assert not DeltaSink(tmp_path, typed.schema, "_day", "w").add(4, again)
    assert DeltaSink(tmp_path, typed.schema, "_day", "other").add(4, [])
    assert partition_rows(tmp_path) == {"2026-01-01": 2}
    assert [path.name for path in tmp_path.glob("*/*.parquet")] == ["4-1.parquet"]


def test_a_writer_knows_of_others(tmp_path):
    typed = numbers(1)
    first = DeltaSink(tmp_path, typed.schema, "_day", "first")
    assert first.other_writer() is None
    first.add(1, write_files(tmp_path, "_day", typed, "1"))
    assert first.other_writer() is None
    backfill = DeltaSink(tmp_path, typed.schema, "_day", "backfill")
    backfill.replace(replaced(), [])
    assert first.other_writer() is None
    assert DeltaSink(tmp_path, typed.schema, "_day", "second").other_writer() == "first"


def test_columns_are_added_and_types_stay(tmp_path):
    DeltaSink(tmp_path, numbers(1).schema, "_day", "w")
    wider = typed_rows(table_of([Column("x", "BIGINT"), Column("y", "DATE")]), OUTPUT.empty_table())
    DeltaSink(tmp_path, wider.schema, "_day", "w")
    assert [field.name for field in DeltaTable(str(tmp_path)).schema().fields] == [
        "x",
        "_event_time",
        "_source_partition",
        "_source_offset",
        "_day",
        "y",
    ]
    other = typed_rows(table_of([Column("x", "VARCHAR")]), OUTPUT.empty_table())
    with pytest.raises(SinkError, match=r"column .x. of table .+ is long, not string"):
        DeltaSink(tmp_path, other.schema, "_day", "w")
    with pytest.raises(SinkError, match="is partitioned by _day, not by _hour"):
        DeltaSink(tmp_path, numbers(1).schema, "_hour", "w")


def test_partitions_of_a_range():
    hour = 3_600_000
    assert partitions_between(NOON, NOON + 2 * hour, "hour") == ["2026-01-01-12", "2026-01-01-13"]
    assert (is_whole(NOON, "hour"), is_whole(NOON, "day")) == (True, False)


def replaced(*days, read=None, unknown=False):
    return Replaced(partitions=frozenset(days), source=SOURCE, read=read or {}, unknown=unknown)


def table_of(columns):
    return TableParams(name="t", path="t", partition="day", columns=tuple(columns), interval=10_000)


def numbers(*values):
    """Rows of one BIGINT column."""
    packed = [f'["{value}"]'.encode() for value in values]
    return typed_rows(table_of([Column("x", "BIGINT")]), output(packed))


def output(values):
    rows = [{"slot": 0, "value": value, "timestamp": NOON, "kind": 0} for value in values]
    return pa.Table.from_pylist(rows, OUTPUT)

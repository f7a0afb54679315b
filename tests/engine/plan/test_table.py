"""Values come out of a table as they went in, whatever their type."""
# pyright: basic

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kaflow_engine.connectors.delta.data_files import write_files
from kaflow_engine.connectors.delta.held import WRITER, Added
from kaflow_engine.connectors.delta.table import (
    DeltaSink,
    held_batches,
    partition_rows,
    require_fit,
)
from kaflow_engine.connectors.replaced import ReplacedRecords
from kaflow_engine.duck.queries import query
from kaflow_engine.errors import SinkError, StateError, TakenOver
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.flow.sinks import TableParams
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.row_text import pack, to_text
from kaflow_engine.operators.rows.table_rows import SOURCE, is_whole, partitions_between, typed_rows
from kaflow_engine.plan.planner.outputs.table import table_type

NOON = 1_767_268_800_000
VALUES = [
    ("true", "BOOLEAN", True),
    ("-3", "TINYINT", -3),
    ("9007199254740993", "BIGINT", 9007199254740993),
    ("18446744073709551615", "UBIGINT", Decimal(18446744073709551615)),
    ("250", "UTINYINT", 250),
    ("12345678901234567890123", "HUGEINT", Decimal(12345678901234567890123)),
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


@pytest.mark.parametrize("kind", ["BIT", "INTERVAL", "TIME", "HUGEINT[]", "STRUCT(a BIT)"])
def test_type_that_no_table_keeps(kind):
    assert table_type(kind) is None


def test_a_batch_is_added_once(tmp_path):
    typed = numbers(1, 2)
    sink = DeltaSink(tmp_path, typed.schema, "_day", "w")
    assert sink.add(4, write_files(tmp_path, "_day", typed, "4-1"), "m")
    again = write_files(tmp_path, "_day", typed, "4-2")
    assert not DeltaSink(tmp_path, typed.schema, "_day", "w").add(4, again, "m")
    assert partition_rows(tmp_path) == {"2026-01-01": 2}
    assert [path.name for path in tmp_path.glob("*/*.parquet")] == ["4-1.parquet"]


@pytest.mark.parametrize(
    ("batch", "mark", "rows", "said"),
    [
        (3, "m3", (1, 2), "batch 3 has written 1 rows to partition '2026-01-01' of .*, and has 2"),
        (3, "m3", (), "batch 3 has written 1 rows to partition '2026-01-01' of .*, and has 0"),
        (3, "other", (1,), "holds batch 3 of this state with other records than its log has"),
        (2, "m2", (1,), "batch 2 has written 0 rows to partition '2026-01-01' of .*, and has 1"),
        (2, "m2", (), ""),
        (1, "m1", (7,), ""),
        (1, "other", (7,), "holds batch 1 of this state with other records"),
    ],
)
def test_a_number_that_was_seen_before_proves_nothing(tmp_path, batch, mark, rows, said):
    """The table has batches 1, 3 and 4; batch 2 had no rows."""
    sink = DeltaSink(tmp_path, numbers(1).schema, "_day", "w")
    for number in (1, 3, 4):
        written = write_files(tmp_path, "_day", numbers(number), str(number))
        assert sink.add(number, written, f"m{number}")
    assert not sink.add(2, [], "m2")
    behind = DeltaSink(tmp_path, numbers(1).schema, "_day", "w")
    files = write_files(tmp_path, "_day", numbers(*rows), "again") if rows else []
    if said:
        with pytest.raises(StateError, match=said):
            behind.add(batch, files, mark)
        assert all((tmp_path / file.path).exists() for file in files)
    else:
        assert not behind.add(batch, files, mark)
        assert not any((tmp_path / file.path).exists() for file in files)
    assert partition_rows(tmp_path) == {"2026-01-01": 3}


def test_a_batch_whose_records_were_lost_may_have_fewer_rows(tmp_path):
    sink = DeltaSink(tmp_path, numbers(1).schema, "_day", "w")
    sink.add(3, write_files(tmp_path, "_day", numbers(1, 2), "3"), "m3")
    fewer = write_files(tmp_path, "_day", numbers(1), "fewer")
    assert not sink.add(3, fewer, "m3", same_rows=False)
    for batch, mark in ((3, "other"), (2, "m2")):  # but not others, and none where there were none
        with pytest.raises(StateError, match=f"batch {batch} "):
            sink.add(batch, fewer, mark, same_rows=False)


@pytest.mark.parametrize("batch", [1, 2])
def test_a_batch_of_an_earlier_version_is_known_by_its_number(tmp_path, monkeypatch, batch):
    sink = DeltaSink(tmp_path, numbers(1).schema, "_day", "w")
    with monkeypatch.context() as patch:
        patch.setattr(Added, "info", lambda added, writer: {WRITER: writer})
        assert sink.add(2, write_files(tmp_path, "_day", numbers(1), "2"), "m2")
    assert not sink.add(batch, write_files(tmp_path, "_day", numbers(7), "again"), f"m{batch}")
    assert partition_rows(tmp_path) == {"2026-01-01": 1}
    assert sink.add(3, write_files(tmp_path, "_day", numbers(3), "3"), "m3")
    with pytest.raises(StateError, match="holds batch 3 of this state with other records"):
        sink.add(3, write_files(tmp_path, "_day", numbers(3), "3-again"), "other")


def test_a_table_has_one_owner(tmp_path):
    schema = numbers(1).schema

    def files(name):
        return write_files(tmp_path, "_day", numbers(1), name)

    assert held_batches(tmp_path, "first") == {}
    first, second = (DeltaSink(tmp_path, schema, "_day", w) for w in ("first", "second"))
    assert held_batches(tmp_path, "first") == {}
    first.add(5, files("5"))
    DeltaSink(tmp_path, schema, "_day", "backfill").replace(replaced(), [])
    assert held_batches(tmp_path, "first") == {"first": 5}
    assert held_batches(tmp_path, "second") == {"first": 5}
    with pytest.raises(TakenOver, match=r"has taken over table '.*': 'first'"):
        second.add(1, files("1"))
    DeltaSink(tmp_path, schema, "_day", "second").own()
    assert held_batches(tmp_path, "second") == {}
    assert held_batches(tmp_path, "first") == {"first": 5, "second": 0}
    with pytest.raises(TakenOver, match=r"has taken over table '.*': 'second'"):
        first.add(6, files("6"))


def test_a_commit_that_slept_through_a_change_of_owner_fails(tmp_path, monkeypatch):
    first = DeltaSink(tmp_path, numbers(1).schema, "_day", "first")
    first.add(1, write_files(tmp_path, "_day", numbers(1), "1"))
    own = first.own

    def sleep():
        own()
        DeltaSink(tmp_path, numbers(1).schema, "_day", "second").own()

    monkeypatch.setattr(first, "own", sleep)
    with pytest.raises(SinkError, match=r"was changed by another writer: .*Metadata changed"):
        first.add(2, write_files(tmp_path, "_day", numbers(2), "2"))
    assert partition_rows(tmp_path) == {"2026-01-01": 1}


def test_looking_changes_nothing(tmp_path):
    require_fit(tmp_path / "none", numbers(1).schema, "_day")
    assert not (tmp_path / "none").exists()
    DeltaSink(tmp_path, numbers(1).schema, "_day", "w")
    before = sorted(tmp_path.rglob("*"))
    wider = typed_rows(table_of([Column("x", "BIGINT"), Column("y", "DATE")]), OUTPUT.empty_table())
    require_fit(tmp_path, wider.schema, "_day")
    other = typed_rows(table_of([Column("x", "VARCHAR")]), OUTPUT.empty_table())
    with pytest.raises(SinkError, match=r"column .x. of table .+ is long, not string"):
        require_fit(tmp_path, other.schema, "_day")
    assert sorted(tmp_path.rglob("*")) == before


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
    return ReplacedRecords(
        partitions=frozenset(days), source=SOURCE, read=read or {}, unknown=unknown
    )


def table_of(columns):
    return TableParams(name="t", path="t", partition="day", columns=tuple(columns), interval=10_000)


def numbers(*values):
    """Rows of one BIGINT column."""
    packed = [f'["{value}"]'.encode() for value in values]
    return typed_rows(table_of([Column("x", "BIGINT")]), output(packed))


def output(values):
    rows = [{"slot": 0, "value": value, "timestamp": NOON, "kind": 0} for value in values]
    return pa.Table.from_pylist(rows, OUTPUT)

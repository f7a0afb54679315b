"""Iceberg tables in a catalog of their own: changes, batches that run again, evolution."""
# pyright: basic

import builtins
import decimal
from dataclasses import replace

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitStateUnknownException
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

from kaflow_engine.connectors.contract import FinishedBatch, Owner
from kaflow_engine.connectors.iceberg import outputs
from kaflow_engine.connectors.iceberg.errors import IcebergAway, IcebergUnfit
from kaflow_engine.connectors.tables import retries
from kaflow_engine.errors import StateError, TakenOver
from kaflow_engine.model.columns import Column
from kaflow_engine.model.outputs.connection_specs import IcebergConnection
from tests.engine.connectors.iceberg_here import NAME, Table, catalog_in, catalog_of
from tests.engine.connectors.typed_output_here import OWNER

pytestmark = pytest.mark.slow


@pytest.fixture
def catalog(tmp_path):
    return catalog_in(tmp_path)


KEYS = [
    ("VARCHAR", ("a", "b")),
    ("BIGINT", ("1", "2")),
    ("DATE", ("2026-01-01", "2026-01-02")),
    ("DECIMAL(9,2)", ("1.50", "2.50")),
    ("TIMESTAMP WITH TIME ZONE", ("2026-01-01 00:00:00+00", "2026-01-01 01:00:00+00")),
    ("UBIGINT", ("1", "18446744073709551615")),
    ("TIMESTAMP", ("2026-01-01 00:00:00", "2026-01-02 00:00:00.5")),
    ("BOOLEAN", ("true", "false")),
]


@pytest.mark.parametrize(("kind", "keys"), KEYS, ids=[each[0] for each in KEYS])
def test_the_last_change_of_a_key_stays(catalog, kind, keys):
    a, b = keys
    table = Table(catalog, (Column("k", kind), Column("n", "INTEGER")), key="k", changes=True)
    sink = table.begin()
    table.write(sink, 1, (a, [a, "1"]), (b, [b, "1"]), (a, [a, "2"]))
    assert {n for _, n in table.rows()} == {1, 2}
    table.write(sink, 2, (b, [b, None]))
    table.write(sink, 3, (a, None), (b, [b, "3"]))
    assert [n for _, n in table.rows()] == [3]
    table.write(sink, 4, (b, None))
    assert table.rows() == []


def test_a_key_by_which_no_rows_are_found(catalog):
    table = Table(catalog, (Column("k", "UUID"),), key="k", changes=True)
    with pytest.raises(IcebergUnfit, match="column 'k' cannot be the key") as caught:
        table.look()
    assert caught.value.hint == "write CAST(k AS VARCHAR) AS k"


def test_a_key_that_is_no_column_and_one_that_is_null(catalog):
    table = Table(catalog, (Column("n", "INTEGER"),), key="_key", changes=True)
    sink = table.begin()
    table.write(sink, 1, ('{"a":1,"b":null}', ["1"]), ("x", ["2"]))
    table.write(sink, 2, ("x", None))
    assert table.rows() == [(1, '{"a":1,"b":null}')]
    other = Table(catalog, key="k", changes=True, name="sales.other")
    sink = other.begin()
    written = other.write(sink, 1, (None, [None, "1"]), ("b", ["b", "2"]))
    other.write(sink, 2, (None, None))  # it never came
    assert [one.message for one in written.refused] == ["column 'k' is the key, and NULL"]
    assert other.rows() == [("b", 2)]


def test_a_batch_that_runs_again_is_there_once(catalog):
    table = Table(catalog)
    sink = table.begin()
    table.write(sink, 1, ("a", ["a", "1"]))
    table.write(sink, 1, ("a", ["a", "1"]))
    again = table.begin(replace(OWNER, epoch=2))
    assert [again.delivered(batch) for batch in (1, 2)] == [True, False]
    table.write(again, 1, ("a", ["a", "1"]))
    assert table.rows() == [("a", 1)]
    with table.loaded() as there:
        (snapshot,) = there.snapshots()
        assert snapshot.summary.additional_properties.items() >= {
            ("kaflow.state", "s"),
            ("kaflow.generation", "1"),
            ("kaflow.batch", "1"),
        }
        assert "commit.retry.num-retries" not in there.properties  # others may try again


def test_a_batch_that_is_another_one_is_refused(catalog):
    table = Table(catalog)
    sink = table.begin()
    table.write(sink, 1, ("a", ["a", "1"]))
    with pytest.raises(StateError, match="another copy of the state was run"):
        table.write(sink, 1, ("a", ["a", "1"]), mark="other")
    with pytest.raises(StateError, match=r"has written 1 rows to table .* and has 2"):
        table.write(sink, 1, ("a", ["a", "1"]), ("b", ["b", "1"]))
    notes = table.task(1).notes
    sink.commit(FinishedBatch(number=1, mark="m", notes=notes, same_rows=False))
    assert table.rows() == [("a", 1)]


def meanwhile(monkeypatch, *steps):
    """Let something happen between the look at a table and the commit, once for each step."""
    left, original = list(steps), outputs._without_retries

    def loaded(table):
        if left:
            left.pop(0)()
        return original(table)

    monkeypatch.setattr(outputs, "_without_retries", loaded)
    monkeypatch.setattr(retries, "PAUSES", (0.0, 0.0))


def added(table, row):
    """Let another program add a row."""
    with table.loaded() as there:
        there.append(pa.table({"k": [row], "n": pa.array([0], pa.int32())}))


@pytest.mark.parametrize("changes", [False, True])
def test_another_writer_in_between(catalog, monkeypatch, changes):
    table = Table(catalog, key="k" if changes else None, changes=changes)
    sink = table.begin()
    table.write(sink, 1, ("a", ["a", "1"]))
    meanwhile(monkeypatch, lambda: added(table, "x"))
    table.write(sink, 2, ("a" if changes else "b", ["a", "2"]))
    assert table.rows() == sorted([("a", 2), ("x", 0), *([] if changes else [("a", 1)])])
    meanwhile(monkeypatch, *(lambda: added(table, "y") for _ in range(3)))
    with pytest.raises(IcebergAway, match="committing batch 3 of output"):
        table.write(sink, 3, ("c", ["c", "3"]))
    table.write(sink, 3, ("c", ["c", "3"]))
    assert [row for row in table.rows() if row[0] == "c"] == [("c", 3)]


def test_the_same_batch_in_between(catalog, monkeypatch):
    table = Table(catalog)
    zombie, sink = table.begin(), table.begin(replace(OWNER, epoch=2))
    meanwhile(monkeypatch, lambda: table.write(sink, 1, ("a", ["a", "1"])))
    table.write(zombie, 1, ("a", ["a", "1"]))
    assert table.rows() == [("a", 1)]


def test_a_commit_whose_answer_is_lost(catalog, monkeypatch):
    from pyiceberg.catalog.sql import SqlCatalog

    table = Table(catalog)
    sink, commit, lost = table.begin(), SqlCatalog.commit_table, []

    def committed(*about):
        found = commit(*about)
        if not lost:
            lost.append(found)
            raise CommitStateUnknownException("no answer")
        return found

    monkeypatch.setattr(SqlCatalog, "commit_table", committed)
    monkeypatch.setattr(retries, "PAUSES", (0.0,))
    table.write(sink, 1, ("a", ["a", "1"]))
    assert lost
    assert table.rows() == [("a", 1)]


def test_another_state_takes_over_only_where_it_is_handed(catalog):
    table, other = Table(catalog), Owner(state="t", generation=1)
    sink = table.begin()
    table.write(sink, 1, ("a", ["a", "1"]))
    held = table.look(other)
    assert {(each.state, each.batch, each.mark) for each in held} == {("s", 1, "m")}
    table.hand_over(other)
    with pytest.raises(TakenOver, match="another state of the pipeline"):
        table.write(sink, 2, ("b", ["b", "2"]))
    new = table.begin(other)
    assert not new.delivered(1)
    table.write(new, 1, ("c", ["c", "3"]))
    assert table.rows() == [("a", 1), ("c", 3)]


def test_new_columns_are_added_and_rows_that_are_there_have_none(catalog):
    table = Table(catalog)
    table.write(table.begin(), 1, ("a", ["a", "1"]))
    more = (*table.sink.columns, Column("u", "UUID"), Column("l", "INTEGER[]"))
    wider = Table(catalog, more)
    assert [each.batch for each in wider.look()] == [1]
    wider.write(wider.begin(), 2, ("b", ["b", "2", None, None]))
    assert wider.rows() == [("a", 1, None, None), ("b", 2, None, None)]
    table.write(table.begin(), 3, ("c", ["c", "3"]))  # one that knows less writes no value
    assert table.rows()[-1] == ("c", 3, None, None)


def there_is(catalog, *fields):
    with catalog_of(catalog) as opened:
        opened.create_namespace("sales")
        opened.create_table(NAME, Schema(*fields))


def test_wider_columns_and_required_ones(catalog):
    there_is(
        catalog,
        NestedField(1, "k", StringType(), required=True),
        NestedField(2, "n", LongType(), required=False),
        NestedField(3, "d", DecimalType(12, 2), required=False),
        NestedField(4, "f", DoubleType(), required=False),
    )
    kinds = (*Table(catalog).sink.columns, Column("d", "DECIMAL(9,2)"), Column("f", "FLOAT"))
    table = Table(catalog, kinds, create=False)
    sink = table.begin()
    table.write(sink, 1, ("a", ["a", "1", "1.25", "0.5"]))
    assert table.rows() == [("a", 1, decimal.Decimal("1.25"), 0.5)]
    with pytest.raises(IcebergUnfit, match=r"column 'k' of table .* must have"):
        table.write(sink, 2, ("a", [None, "1", None, None]))


UNFIT = [
    (NestedField(2, "n", StringType(), required=False), "its column 'n' is string, which does not"),
    (NestedField(2, "m", IntegerType(), required=True), "its column 'm' must have a value, and is"),
]


@pytest.mark.parametrize(("field", "said"), UNFIT, ids=[each[1] for each in UNFIT])
def test_a_table_that_does_not_fit(catalog, field, said):
    there_is(catalog, NestedField(1, "k", StringType(), required=False), field)
    with pytest.raises(IcebergUnfit, match=said):
        Table(catalog).look()
    with pytest.raises(IcebergUnfit, match=said):
        Table(catalog).begin()


def test_a_table_that_is_not_there_and_a_catalog_that_is_none(catalog, tmp_path):
    with pytest.raises(IcebergUnfit, match="there is no table"):
        Table(catalog, create=False).look()
    assert Table(catalog).look() == ()
    nowhere = IcebergConnection(uri=f"sqlite:///{tmp_path}/not/there.db", warehouse=str(tmp_path))
    with pytest.raises(IcebergAway, match="looking at the table of output"):
        Table(nowhere).look()
    table = Table(catalog)
    table.output = replace(table.output, connection={})
    with pytest.raises(IcebergUnfit, match="is not in the configuration"):
        table.look()


def test_without_the_library_it_says_how_to_get_it(catalog, monkeypatch):
    imported = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.startswith("pyiceberg"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(IcebergUnfit, match="pyiceberg, which is not installed") as caught:
        Table(catalog).begin()
    assert caught.value.hint == "run pip install 'kaflow-dagster[iceberg]'"

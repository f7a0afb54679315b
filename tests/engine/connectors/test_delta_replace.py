"""A backfill replaces the rows of the records that it has read, whatever else writes the table."""
# pyright: basic

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kaflow_engine.connectors.delta import table as delta
from kaflow_engine.connectors.delta.data_files import write_files
from kaflow_engine.connectors.delta.table import DeltaSink
from kaflow_engine.connectors.replaced import ReplacedGroups, ReplacedRecords
from kaflow_engine.errors import SinkError, StateError

SOURCE = ("p", "o")
SCHEMA = pa.schema(
    [("p", pa.int32()), ("o", pa.int64()), ("by", pa.string()), ("_day", pa.string())]
)
DAY, NEXT = "2026-01-01", "2026-01-02"


class Table:
    """A table that a stream and backfills write."""

    def __init__(self, folder):
        self.folder, self.batch, self.written = folder, 0, 0
        self.stream = DeltaSink(folder, SCHEMA, "_day", "stream")
        self.backfill = DeltaSink(folder, SCHEMA, "_day", "backfill")

    def files(self, name, *places, day=DAY):
        rows = [{"p": p, "o": o, "by": name, "_day": day} for p, o in places]
        self.written += 1
        named = f"{name}-{self.written}"
        return write_files(self.folder, "_day", pa.Table.from_pylist(rows, SCHEMA), named)

    def add(self, *places, day=DAY):
        self.batch += 1
        self.stream.add(self.batch, self.files(f"s{self.batch}", *places, day=day))

    def replace(self, read, *places, unknown=False):
        parts = frozenset([DAY])
        wanted = ReplacedRecords(partitions=parts, source=SOURCE, read=read, unknown=unknown)
        self.backfill.replace(wanted, self.files("b", *places))

    def rows(self):
        rows = DeltaTable(str(self.folder)).to_pyarrow_table().to_pylist()
        return sorted(f"{row['by']} {row['p']}:{row['o']}" for row in rows)


@pytest.fixture
def table(tmp_path):
    return Table(tmp_path)


READS = [
    # all of a file, part of it, none of it
    ({0: (0, 9)}, ["b 0:1"]),
    ({0: (0, 2)}, ["b 0:1", "s1 0:2", "s2 0:3"]),
    ({0: (2, 3)}, ["b 0:1", "s1 0:1", "s2 0:3"]),
    ({0: (5, 9)}, ["b 0:1", "s1 0:1", "s1 0:2", "s2 0:3"]),
    # another partition of the topic, none
    ({1: (0, 9)}, ["b 0:1", "s1 0:1", "s1 0:2", "s2 0:3"]),
    ({}, ["b 0:1", "s1 0:1", "s1 0:2", "s2 0:3"]),
]


@pytest.mark.parametrize(("read", "expected"), READS)
def test_rows_of_records_that_were_read_go(table, read, expected):
    table.add((0, 1), (0, 2))
    table.add((0, 3))
    table.add((0, 4), day=NEXT)
    table.replace(read, (0, 1))
    assert table.rows() == sorted([*expected, "s3 0:4"])
    table.replace(read, (0, 1))  # its commit is there already
    assert table.rows() == sorted([*expected, "s3 0:4"])


def meanwhile(monkeypatch, *each):
    """Let others change the table between a look at it and the commit that follows."""
    commit, left = DeltaSink._commit, list(each)

    def commit_late(sink, *about, **more):
        if left and "retries" in more:
            left.pop(0)()
        commit(sink, *about, **more)

    monkeypatch.setattr(DeltaSink, "_commit", commit_late)


def test_what_is_added_between_the_look_and_the_commit_stays(table, monkeypatch):
    table.add((0, 1))
    meanwhile(monkeypatch, lambda: table.add((0, 8)), lambda: table.add((0, 9)))
    table.replace({0: (0, 5)}, (0, 1))
    assert table.rows() == ["b 0:1", "s2 0:8", "s3 0:9"]


def test_files_that_another_program_rewrites_meanwhile(table, monkeypatch):
    table.add((0, 1))
    table.add((0, 8))
    meanwhile(monkeypatch, DeltaTable(str(table.folder)).optimize.compact)
    table.replace({0: (0, 5)}, (0, 1))
    assert table.rows() == ["b 0:1", "s2 0:8"]


def test_a_table_that_changes_all_the_time(table, monkeypatch):
    table.add((0, 1))
    monkeypatch.setattr(delta, "_TRIES", 3)
    meanwhile(monkeypatch, *[lambda: table.add((0, 8))] * 3)
    with pytest.raises(SinkError, match="was changed by another writer"):
        table.replace({0: (0, 5)}, (0, 1))
    assert "b 0:1" not in table.rows()
    table.replace({0: (0, 5)})
    assert table.rows() == ["s2 0:8", "s3 0:8", "s4 0:8"]


def test_rows_that_name_no_record(table):
    table.add((None, None), (0, 1))
    with pytest.raises(StateError, match="in partition '2026-01-01' that do not name the record"):
        table.replace({0: (0, 5)}, (0, 1))
    assert table.rows() == ["s1 0:1", "s1 None:None"]
    table.replace({0: (0, 5)}, (0, 1), unknown=True)
    assert table.rows() == ["b 0:1"]


def test_files_of_an_earlier_version(table):
    (file,) = table.files("s1", (0, 1))
    bare = pq.read_table(table.folder / file.path, partitioning=None).drop_columns(["p", "o"])
    (table.folder / file.path).unlink()
    rows = bare.append_column("_day", pa.array([DAY]))
    table.stream.add(1, write_files(table.folder, "_day", rows, "s1"))
    with pytest.raises(StateError, match="that do not name the record"):
        table.replace({0: (0, 5)}, (0, 1))
    table.replace({0: (0, 5)}, (0, 1), unknown=True)
    assert table.rows() == ["b 0:1"]


GROUPS = pa.schema([("_group", pa.string()), ("by", pa.string()), ("_day", pa.string())])


def test_windows_of_partitions_are_replaced_whatever_they_were_made_of(tmp_path):
    stream = DeltaSink(tmp_path, GROUPS, "_day", "stream")

    def files(name, *groups, day=DAY):
        rows = [{"_group": group, "by": name, "_day": day} for group in groups]
        return write_files(tmp_path, "_day", pa.Table.from_pylist(rows, GROUPS), name)

    stream.add(1, [*files("s1", "a", "b"), *files("other", "a", day="2026-01-02")])
    wanted = ReplacedGroups(partitions=frozenset([DAY]), group="_group", unknown=False)
    DeltaSink(tmp_path, GROUPS, "_day", "backfill").replace(wanted, files("b1", "b", "c"))
    rows = DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert sorted((row["by"], row["_group"]) for row in rows) == [
        ("b1", "b"),
        ("b1", "c"),
        ("other", "a"),
    ]
    stream.add(2, files("s2", None))
    again = DeltaSink(tmp_path, GROUPS, "_day", "again")
    with pytest.raises(StateError, match="do not name the group they are of"):
        again.replace(wanted, [])
    again.replace(replace(wanted, unknown=True), [])
    (left,) = DeltaTable(str(tmp_path)).to_pyarrow_table().to_pylist()
    assert left["by"] == "other"

"""The newest rows of a table come from the end of its newest file."""

# pyright: basic

import pyarrow as pa
import pytest

from kaflow_engine.connectors.delta.data_files import write_files
from kaflow_engine.connectors.delta.newest import newest_table_rows
from kaflow_engine.connectors.delta.table import DeltaSink
from kaflow_engine.errors import SourceError

SCHEMA = pa.schema([("id", pa.int64()), ("_day", pa.string())])
MUCH = 1 << 20


def add(folder, batch, day, ids):
    rows = pa.table([ids, [day] * len(ids)], schema=SCHEMA)
    sink = DeltaSink(folder, SCHEMA, "_day", "w")
    sink.add(batch, write_files(folder, "_day", rows, str(batch)))


def test_newest_rows(tmp_path):
    add(tmp_path, 1, "2026-01-02", range(5))
    first = newest_table_rows(tmp_path, 2, MUCH)
    assert first.rows == ({"id": 4, "_day": "2026-01-02"}, {"id": 3, "_day": "2026-01-02"})
    add(tmp_path, 2, "2026-01-01", [7])
    second = newest_table_rows(tmp_path, 2, MUCH)
    assert second.rows == ({"id": 7, "_day": "2026-01-01"},)
    assert second.version > first.version


def test_a_file_that_is_much_to_read_shows_nothing(tmp_path):
    add(tmp_path, 1, "2026-01-02", range(5))
    assert newest_table_rows(tmp_path, 2, 1).rows == ()


def test_no_table(tmp_path):
    with pytest.raises(SourceError, match=f"cannot read table '{tmp_path.name}'"):
        newest_table_rows(tmp_path, 2, MUCH)

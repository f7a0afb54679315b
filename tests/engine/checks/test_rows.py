"""Which rows of a table are checked."""
# pyright: basic

import pyarrow as pa
import pytest

from kaflow_engine.checks.rows import newest_partitions, table_rows
from kaflow_engine.connectors.delta.data_files import write_files
from kaflow_engine.connectors.delta.table import DeltaSink

SCHEMA = pa.schema([("id", pa.int64()), ("_day", pa.string())])


@pytest.mark.parametrize(
    ("days", "newest"),
    [
        ([], []),
        (["2026-01-03"], ["2026-01-03"]),
        (["2026-01-03", "2026-01-01", "2026-01-02"], ["2026-01-02", "2026-01-03"]),
    ],
)
def test_what_is_over_and_what_grows(tmp_path, days, newest):
    if days:
        rows = pa.table([range(len(days)), days], schema=SCHEMA)
        DeltaSink(tmp_path, SCHEMA, "_day", "w").add(1, write_files(tmp_path, "_day", rows, "f"))
    assert newest_partitions(str(tmp_path)) == newest
    if days:
        found = table_rows(str(tmp_path), newest)["_day"].to_pylist()
        assert sorted(found) == newest

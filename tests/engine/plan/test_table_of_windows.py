"""Windows on their way into a table: a row names its group, and stands where its window begins."""
# pyright: basic

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from kaflow_engine.flow.graph import table_sinks
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.output.encode import encode_rows
from kaflow_engine.operators.rows.table_rows import typed_rows
from kaflow_engine.plan.planner.pipeline_plan import build_plan

SPEC = {
    "name": "p",
    "query": "SELECT k, sum(v) AS s FROM t GROUP BY k, tumble(INTERVAL 1 DAY)",
    "output": {"table": "o"},
}
COLUMNS = (Column("k", "VARCHAR"), Column("v", "INTEGER"))
BEFORE_1970 = -86_400_000


def sink():
    """Plan a table of windows."""
    plan = build_plan(PipelineSpec.model_validate(SPEC), Config(), {"t": COLUMNS}).plan
    (found,) = table_sinks(plan)
    return found


def test_a_row_names_its_group_and_stands_where_its_window_begins():
    key = f'{{"k":"\\"window_start\\":7}}","window_start":{BEFORE_1970}}}'.encode()
    row = {"key": key, "value": b'["x","12"]', "timestamp": BEFORE_1970 + 5}
    found = typed_rows(sink().table, pa.Table.from_pylist([row], OUTPUT))
    assert found.to_pylist() == [
        {
            "k": "x",
            "s": Decimal(12),
            "_event_time": datetime(1969, 12, 31, tzinfo=UTC),
            "_group": key.decode(),
            "_day": "1969-12-31",
        }
    ]


def test_a_sum_with_more_digits_than_a_table_keeps_is_a_bad_row():
    columns = [Column("k", "VARCHAR"), Column("s", "HUGEINT"), Column("_group", "VARCHAR")]
    large = "rn::HUGEINT * 100000000000000000000000000000000000000"
    sql = f"""SELECT rn, 'x' AS "o.k", {large} AS "o.s", 'g' AS "o._group" FROM rows"""
    done = encode_rows(sink(), columns, sql, pa.table({"rn": pa.array([0, 1], pa.int64())}))
    [row] = done.rows.drop_columns("headers").to_pylist()
    assert row == {"rn": 0, "out_key": b"g", "value": b'["x","0"]'}
    assert [(bad.row, bad.phase) for bad in done.bad] == [(1, "sql")]

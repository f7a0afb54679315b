"""Headers of output records beside that of a backfill, and where rows without a key go."""

# pyright: basic

from dataclasses import replace

import pyarrow as pa
import pytest

from kaflow_engine.errors import Location
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.letters import BACKFILL
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.operators.rows.partitioning import output_parts, own_parts
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalPipeline

RANGE = Backfill(start=0, end=100)


def written(select: str, backfill: Backfill | None) -> list:
    mapping = {"name": "p", "query": f"SELECT {select} FROM t", "output": {"topic": "out"}}
    plan = build_plan(
        pipeline_from_mapping(mapping, Location("p.yaml"), {}),
        Config(),
        {"t": (Column("id", "VARCHAR"),)},
    ).plan
    records = [
        {"topic": "t", "partition": 0, "offset": n, "timestamp": 10, "value": b'{"id":"a"}'}
        | {"headers": headers}
        for n, headers in enumerate(([{"key": "x", "value": b"\xff"}], None))
    ]
    pipeline = LocalPipeline(replace(plan, backfill=backfill), {"t": range(1)})
    found = pipeline.run(pa.Table.from_pylist(records, RECORDS), 50).output.to_pylist()
    return [[(h["key"], h["value"]) for h in row["headers"] or ()] for row in found]


@pytest.mark.parametrize(
    ("select", "own"),
    [
        ("id", [[], []]),
        ("id, _headers AS _headers", [[("x", b"\xff")], []]),
        ("id, map {'is': id, 'kaflow.backfill': 'mine'} AS _headers", [[("is", b"a")]] * 2),
    ],
)
def test_the_mark_of_a_backfill_stands_behind_those_of_the_query(select, own):
    mark = (BACKFILL, str(RANGE).encode())
    assert written(select, None) == own
    assert written(select, RANGE) == [[*each, mark] for each in own]


def test_rows_without_a_key_are_spread_by_their_place():
    keys = pa.array([b"a", None, None, b"b"], pa.binary())
    rows = pa.table({"key": keys, "d_part": [0, 0, 0, 0], "d_off": [1, 2, 200, 3]})
    assert output_parts(rows["key"], 4).to_pylist()[1:3] == [0, 0]
    parts = own_parts(rows, "key", 4).to_pylist()
    assert parts[1:3] == [0, 3]
    assert [parts[0], parts[3]] == [output_parts(rows["key"], 4).to_pylist()[n] for n in (0, 3)]

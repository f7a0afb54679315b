# pyright: basic

import pyarrow as pa
import pytest

from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.rows.shuffle_codec import of_wire, to_wire

LONGS = pa.int64()
ROWS = exchange_rows(
    3,
    target=1,
    part=pa.array([2, 0, 1]),
    kind=0,
    side=-7,
    key=pa.array([b"", None, b"\xff\x00"], pa.binary()),
    t_time=pa.array([1 << 62, None, -(1 << 62)], LONGS),
    t_topic=pa.array([None, None, 3], LONGS),
    members=pa.array([None, [], [1, -2]], pa.list_(LONGS)),
    payload=pa.array(["é", "", None]),
    counted=True,
    forced=pa.array([None, True, False]),
)


@pytest.mark.parametrize(
    "rows", [ROWS, ROWS.slice(1), ROWS.slice(0, 1), EXCHANGE.empty_table()], ids=len
)
def test_rows_travel_unchanged(rows):
    assert of_wire(to_wire(rows)).equals(rows)


def test_slices_of_travelled_rows_are_read():
    assert of_wire(to_wire(ROWS).slice(1, 1)).equals(ROWS.slice(1, 1))

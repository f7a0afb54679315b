# pyright: basic

import pyarrow as pa
import pytest

from kaflow_engine.operators.rows import shuffle_codec
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.rows.shuffle_codec import of_streams, to_streams

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


def sent(rows, tasks):
    return [of_streams([data for to, data in to_streams(rows, tasks) if to == number])
            for number in range(tasks)]  # fmt: skip


@pytest.mark.parametrize(
    "rows", [ROWS, ROWS.slice(1), ROWS.slice(0, 1), EXCHANGE.empty_table()], ids=len
)
def test_rows_travel_unchanged(rows):
    (found,) = sent(rows, 1)
    assert found.equals(rows)


def test_each_task_gets_its_rows_in_their_order():
    rows = pa.concat_tables([ROWS, ROWS.slice(1)])
    even, odd = sent(rows, 2)
    assert even.equals(pa.concat_tables([ROWS.slice(0, 2), ROWS.slice(1, 1)]))
    assert odd.equals(pa.concat_tables([ROWS.slice(2), ROWS.slice(2)]))


def test_all_rows_may_be_for_one_of_several_tasks():
    first, second, third = sent(ROWS.slice(2), 3)
    assert (first.num_rows, third.num_rows) == (0, 0)
    assert second.equals(ROWS.slice(2))


def test_streams_are_not_too_long(monkeypatch):
    monkeypatch.setattr(shuffle_codec, "_CHUNK", 2)
    assert [task for task, _ in to_streams(ROWS, 1)] == [0, 0]
    assert sent(ROWS, 1)[0].equals(ROWS)

"""What is left of a batch that runs again, from its rows and the markers."""

import random
from collections.abc import Mapping

import pyarrow as pa
import pytest

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery.producer import SinkSettings
from kaflow_engine.connectors.kafka.delivery.undelivered import Checksum, undelivered
from kaflow_engine.connectors.run_log import Delivered
from kaflow_engine.errors import StateError
from kaflow_engine.flow.records import OUTPUT

BATCH = 7


def rows_of(text: str) -> pa.Table:
    """Make rows of words such as `0a`: delivery partition and value."""
    words = text.split()
    columns = {
        "slot": [int(word[0]) for word in words],
        "topic": ["t"] * len(words),
        "key": [None if word[1:] == "-" else word[1:].encode() for word in words],
        "value": [word[1:].encode() for word in words],
        "timestamp": [5] * len(words),
        "headers": [None] * len(words),
        "partition": [None] * len(words),
        "kind": [0] * len(words),
        "source_partition": [None] * len(words),
        "source_offset": [None] * len(words),
    }
    return pa.table(columns, schema=OUTPUT)


def words_of(rows: pa.Table) -> str:
    pairs = zip(rows["slot"].to_pylist(), rows["value"].to_pylist(), strict=True)
    return " ".join(f"{slot}{value.decode()}" for slot, value in pairs)


def sink(delivered: Mapping[int, Delivered], same_rows: bool = True) -> SinkSettings:
    return SinkSettings(
        kafka=KafkaSettings.of(["localhost:1"]),
        pipeline_id="p",
        state_id="s",
        generation=1,
        sink="output",
        epoch=2,
        delivered=delivered,
        same_rows=same_rows,
    )


def sum_of(text: str) -> str:
    found = Checksum()
    found.add(rows_of(text))
    return found.text


def test_a_checksum_does_not_depend_on_pieces_but_on_order_and_bounds() -> None:
    rows = rows_of(" ".join(f"0{n}" for n in range(40)) + " 0-")
    chance = random.Random(1)
    whole = Checksum()
    whole.add(rows)
    for _ in range(10):
        cuts = sorted(chance.choices(range(42), k=5))
        found = Checksum()
        for start, end in zip([0, *cuts], [*cuts, 41], strict=True):
            found.add(pa.concat_tables([rows.slice(start, (end - start) // 2)]))
            found.add(rows.slice(start + (end - start) // 2, end - start - (end - start) // 2))
        assert found.text == whole.text
    assert len({sum_of(text) for text in ("0a 0b", "0b 0a", "0ab", "0a", "0a 0b 0", "0-")}) == 6


@pytest.mark.parametrize(
    ("delivered", "left", "skipped"),
    [
        ({}, "0a 1b 0c 1d 2e", ()),
        ({0: Delivered(6, 9), 1: Delivered(3, 1)}, "0a 1b 0c 1d 2e", ()),
        ({0: Delivered(7, 2)}, "1b 1d 2e", (0,)),
        ({0: Delivered(8, 5), 1: Delivered(9, 1, "x")}, "2e", (0, 1)),
        ({0: Delivered(7, 1, sum_of("0a"))}, "1b 0c 1d 2e", (0,)),
        ({0: Delivered(7, 1, sum_of("0a")), 1: Delivered(7, 2)}, "0c 2e", (0, 1)),
        ({s: Delivered(7, n) for s, n in ((0, 2), (1, 2), (2, 1))}, "", (0, 1, 2)),
    ],
)
def test_what_markers_do_not_cover_is_left(
    delivered: Mapping[int, Delivered], left: str, skipped: tuple[int, ...]
) -> None:
    todo = undelivered(sink(delivered), BATCH, rows_of("0a 1b 0c 1d 2e"), alone=True)
    assert (words_of(todo.rows), todo.skipped) == (left, skipped)


def test_markers_of_pieces_lead_a_replay_to_the_end() -> None:
    whole = "0a 1b 0c 1d 0e 2f 0g"
    rows = rows_of(whole)
    for first in range(1, 7):
        todo = undelivered(sink({}), BATCH, rows, alone=True)
        after = {
            slot: Delivered(BATCH, count, digest)
            for slot, count, digest in todo.delivered(todo.rows.slice(0, first))
        }
        again = undelivered(sink(after), BATCH, rows, alone=True)
        assert words_of(again.rows) == " ".join(whole.split()[first:])
        ends = {slot: (n, digest) for slot, n, digest in again.delivered(again.rows)}
        totals = {0: 4, 1: 2, 2: 1}
        assert ends == {slot: (totals[slot], "") for slot in ends}
        assert {slot for slot, found in after.items() if found.digest} <= ends.keys()


@pytest.mark.parametrize(
    ("delivered", "alone", "message"),
    [
        ({0: Delivered(7, 3)}, False, "delivered 3 rows of partition 0, and has 2 now"),
        ({0: Delivered(7, 1)}, False, "delivered 1 rows of partition 0, and has 2 now"),
        ({0: Delivered(7, 2, "x")}, False, "delivered 2 rows of partition 0, and has 2 now"),
        ({5: Delivered(7, 4)}, True, "delivered 4 rows of partition 5, and has 0 now"),
        ({5: Delivered(7, 4, "x")}, True, "delivered 4 rows of partition 5, and has 0 now"),
        (
            {0: Delivered(7, 1, sum_of("0b"))},
            False,
            "delivered the first 1 rows of partition 0, and they are others now",
        ),
    ],
)
def test_a_batch_with_other_rows_is_refused(
    delivered: Mapping[int, Delivered], alone: bool, message: str
) -> None:
    with pytest.raises(StateError, match=message):
        undelivered(sink(delivered), BATCH, rows_of("0a 1b 0c"), alone)


def test_where_records_were_lost_as_many_rows_are_passed_over_as_were_delivered() -> None:
    before = {0: Delivered(7, 1, sum_of("0z")), 1: Delivered(7, 2), 5: Delivered(7, 4)}
    todo = undelivered(sink(before, same_rows=False), BATCH, rows_of("0a 1b 0c"), alone=True)
    assert words_of(todo.rows) == "0c"

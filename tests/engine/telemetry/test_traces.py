"""Ids of spans, and the spans that records name, as rows of data."""

import pyarrow as pa
import pytest

from kaflow_engine.flow.records import RECORDS
from kaflow_engine.telemetry.traces import (
    MOST_LINKS,
    SpanIds,
    first_links,
    ids_of_batch,
    span_of,
    traceparents,
)

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("header", "valid"),
    [
        (GOOD, True),
        (f"00-{TRACE}-{SPAN}-00", True),
        (f"cc-{TRACE}-{SPAN}-01", True),
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later", True),
        (f"00-{TRACE}-{SPAN}-01-what-comes-later", False),
        (f"ff-{TRACE}-{SPAN}-01", False),
        (f"00-{'0' * 32}-{SPAN}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{SPAN}-01", False),
        (f"00-{TRACE[1:]}-{SPAN}-01", False),
        (f"00-{TRACE}-{SPAN}", False),
        (f" {GOOD}", False),
        (f"{GOOD}\n", False),
        ("", False),
        ("é", False),
    ],
)
def test_what_a_header_names(header: str, valid: bool) -> None:
    assert span_of(header) == (SpanIds(TRACE, SPAN) if valid else None)


def records(*rows: tuple[str, list[tuple[str, bytes | None]] | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "topic": topic,
                "partition": 0,
                "offset": offset,
                "timestamp": 0,
                "headers": headers and [{"key": k, "value": v} for k, v in headers],
            }
            for offset, (topic, headers) in enumerate(rows)
        ],
        schema=RECORDS,
    )


def header(number: int, version: str = "00") -> str:
    return f"{version}-{number:032x}-{number:016x}-01"


def sent(number: int) -> list[tuple[str, bytes | None]]:
    return [("traceparent", header(number).encode())]


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([], []),
        ([("a", None), ("a", [])], []),
        ([("a", [("x", b"1"), ("tracestate", b"k=v")])], []),
        ([("a", sent(2)), ("a", sent(1)), ("a", sent(2))], [2, 1]),
        ([("a", sent(1)), ("b", sent(2)), ("c", sent(3))], [1, 3]),
        ([("a", [("traceparent", None), ("traceparent", b"\xff"), *sent(7)])], [7]),
        ([("a", [("traceparent", header(n, v).encode())]) for n, v in ((5, "00"), (5, "cc"))], [5]),
        ([("a", sent(n)) for n in range(2 * MOST_LINKS)], [*range(1, MOST_LINKS + 1)]),
    ],
    ids=["none", "no headers", "others", "each once", "of topics", "invalid", "one span", "most"],
)
def test_the_spans_that_records_name(
    rows: list[tuple[str, list[tuple[str, bytes | None]] | None]], found: list[int]
) -> None:
    assert traceparents(records(*rows), {"a", "c"}) == [header(n) for n in found]


def test_those_of_several_tasks() -> None:
    headers = [header(n) for n in (*range(1, 80), *range(40, 200))]
    assert first_links(headers) == [header(n) for n in range(1, MOST_LINKS + 1)]


def test_ids_of_batches_differ() -> None:
    asked = [
        (b"s", "p", 1, 1),
        (b"s", "p", 1, 2),
        (b"s", "p", 2, 1),
        (b"s", "q", 1, 1),
        (b"t", "p", 1, 1),
    ]
    found = [ids_of_batch(*each) for each in asked]
    assert found == [ids_of_batch(*each) for each in asked]
    assert len({each.trace_id for each in found}) == len(asked)
    assert {(len(each.trace_id), len(each.span_id)) for each in found} == {(32, 16)}

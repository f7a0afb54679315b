"""Traces: the ids of the spans of batches, and the spans of others that records name.

A record names one in its header `traceparent`, as the W3C's Trace Context writes it.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any

from kaflow_engine.model.config import OtlpConfig
from kaflow_engine.model.record_columns import TRACE_HEADERS

if TYPE_CHECKING:
    import pyarrow as pa  # logging needs ids only, and it takes long to load

MOST_LINKS = 100
"""Spans of others to which that of a batch is linked; more of them would say no more."""

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True)
class SpanIds:
    """Which span it is, in hexadecimal digits: 32 and 16 of them."""

    trace_id: str
    span_id: str


def is_sent(config: OtlpConfig) -> bool:
    """Tell whether traces go anywhere."""
    return config.endpoint is not None or _ENDPOINT in os.environ


def ids_of_batch(seed: bytes, pipeline: str, run: int, batch: int) -> SpanIds:
    """Return the ids of the span of a batch, which are known before it is over.

    Args:
        seed: Of this process, as names and numbers may be those of another one, too.
        pipeline: Its name.
        run: Its epoch.
        batch: Its number.
    """
    digits = sha256(seed + f"{pipeline}/{run}/{batch}".encode()).hexdigest()
    return SpanIds(trace_id=digits[:32], span_id=digits[32:48])


def span_of(traceparent: str) -> SpanIds | None:
    """Return the span that a header names; None: it is not valid."""
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return None
    version, trace, span, _, more = found.groups()
    wrong = set(trace) == {"0"} or set(span) == {"0"} or (version == "00" and more is not None)
    return None if wrong else SpanIds(trace_id=trace, span_id=span)


def traceparents(records: "pa.Table", topics: Collection[str]) -> list[str]:
    """Return the different valid headers `traceparent` of records, the first MOST_LINKS of them.

    Args:
        records: Schema RECORDS.
        topics: Whose records count.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    mine = records.filter(pc.is_in(records["topic"], pa.array(sorted(topics), pa.string())))
    entries = pc.list_flatten(mine["headers"])
    if not len(entries):
        return []
    named = entries.filter(pc.equal(pc.struct_field(entries, "key"), TRACE_HEADERS[0]))
    values: Iterable[Any] = pc.unique(pc.struct_field(named, "value"))
    return first_links(_text(value.as_py()) for value in values)


def first_links(found: Iterable[str]) -> list[str]:
    """Return the different valid ones of headers, the first MOST_LINKS of them."""
    return list(islice(_valid(found), MOST_LINKS))


def _valid(found: Iterable[str]) -> Iterator[str]:
    seen: set[SpanIds | None] = {None}
    for each in found:
        if (span := span_of(each)) not in seen:
            seen.add(span)
            yield each


def _text(value: bytes | None) -> str:
    return (value or b"").decode("ascii", "replace")

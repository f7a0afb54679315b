"""What a task tells the driver: one JSON row for each report."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kaflow_engine.operators.rows.schemas import EXCHANGE, REPORT, REPORTS

BATCH_TIME = -1
"""In place of a chain: what falls due by batch time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReport:
    """What a batch read of one source partition."""

    max_ts: int | None
    """Greatest event time by the first clock, epoch milliseconds; None without a good record."""
    first_offset: int
    last_offset: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """What a batch did."""

    partitions: Mapping[tuple[str, int], PartitionReport] = field(
        default_factory=dict[tuple[str, int], PartitionReport]
    )
    by_clock: Mapping[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """By other clocks of topics, and partition: the greatest event time."""
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes that were read of each topic: keys, values and headers."""
    next_due: Mapping[int, int] = field(default_factory=dict[int, int])
    """By chain, or BATCH_TIME: a lower bound of what falls due next, of what the batch touched."""
    lookups: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """By joined topic: rows that left the join, and those of them that have a match."""
    notes: tuple[Mapping[str, Any], ...] = ()
    """Reports of the task itself, such as change files."""

    @property
    def times(self) -> Mapping[tuple[str, int], int]:
        """The greatest event time by clock and partition; absent without a good record."""
        first = {at: part.max_ts for at, part in self.partitions.items() if part.max_ts is not None}
        return {**first, **self.by_clock}


def report_rows(reports: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Build rows of schema EXCHANGE that carry reports to the driver."""
    payloads = [json.dumps(report) for report in reports]
    return exchange_rows(
        len(payloads),
        target=REPORTS,
        part=0,
        kind=REPORT,
        payload=pa.array(payloads, pa.string()),
    )


def due_report(chain: int, due: int | None) -> Mapping[int, int]:
    """Report what falls due next in the state of an operator; None: nothing that is known of."""
    return {} if due is None else {chain: due}


def partition_reports(
    topic: str, records: pa.Table, timed: Mapping[str, pa.Table]
) -> Iterator[Mapping[str, Any]]:
    """Report what was read of each partition of a topic.

    Args:
        topic: Its name.
        records: Schema RECORDS.
        timed: By its clocks, the first one first: rn and $ts of the records that have an event
            time.
    """
    times = {clock: _latest(records, each) for clock, each in timed.items()}
    latest = times.get(topic, next(iter(times.values())))
    for clock, found in times.items():
        if clock != topic:
            yield {"clock": [clock, sorted(found.items())]}
    offsets = records.group_by("partition").aggregate(
        [("offset", "min"), ("offset", "max"), ("offset", "count")]
    )
    for row in offsets.to_pylist():
        place = row["partition"]
        read = [row["offset_min"], row["offset_max"], row["offset_count"]]
        yield {"partition": [topic, place, latest.get(place), *read]}


def _latest(records: pa.Table, timed: pa.Table) -> dict[int, int]:
    """Return the greatest event time of each partition."""
    timed = timed.append_column("partition", records.column("partition").take(timed.column("rn")))
    grouped = timed.group_by("partition").aggregate([("$ts", "max")]).to_pylist()
    return {row["partition"]: row["$ts_max"] for row in grouped}


def bytes_of(records: pa.Table) -> int:
    """Return the bytes of keys, values and headers of records (schema RECORDS)."""
    return records.select(["key", "value", "headers"]).nbytes


def exchange_rows(count: int, **columns: Any) -> pa.Table:
    """Build rows of schema EXCHANGE from arrays and constants; what is not named is null."""
    arrays: list[Any] = []
    for wanted in EXCHANGE:
        given = columns.get(wanted.name)
        if given is None:
            arrays.append(pa.nulls(count, wanted.type))
        elif isinstance(given, pa.Array | pa.ChunkedArray):
            arrays.append(given.cast(wanted.type))
        else:
            arrays.append(pa.repeat(pa.scalar(given, wanted.type), count))
    return pa.Table.from_arrays(arrays, schema=EXCHANGE)


def read_reports(rows: pa.Table) -> BatchReport:
    """Add up the report rows of a batch."""
    partitions: dict[tuple[str, int], PartitionReport] = {}
    by_clock: dict[tuple[str, int], int] = {}
    counters: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    dues: dict[int, int] = {}
    lookups: dict[str, tuple[int, int]] = {}
    notes: list[Mapping[str, Any]] = []
    for payload in rows.column("payload").to_pylist():
        report: dict[str, Any] = json.loads(payload)
        if "partition" in report:
            topic, partition, max_ts, first, last, count = report["partition"]
            partitions[(topic, partition)] = PartitionReport(
                max_ts=max_ts, first_offset=first, last_offset=last, count=count
            )
        for clock, times in [report["clock"]] if "clock" in report else []:
            by_clock |= {(clock, partition): ts for partition, ts in times}
        counters.update(report.get("counters", {}))
        sizes.update(report.get("sizes", {}))
        for chain, due in report.get("due", {}).items():
            dues[int(chain)] = min(due, dues.get(int(chain), due))
        for topic, (rows_left, matched) in report.get("lookups", {}).items():
            known = lookups.get(topic, (0, 0))
            lookups[topic] = known[0] + rows_left, known[1] + matched
        if "note" in report:
            notes.append(report["note"])
    return BatchReport(
        partitions=partitions,
        by_clock=by_clock,
        counters={name: count for name, count in sorted(counters.items()) if count},
        sizes=dict(sizes),
        next_due=dues,
        lookups=lookups,
        notes=tuple(notes),
    )

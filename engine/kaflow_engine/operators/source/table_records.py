"""Records on their way to a table: rows and deletes under the table's key."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.tables import Materialize
from kaflow_engine.formats.pick import keep
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import BadRow, bad_records, guarded
from kaflow_engine.operators.rows.layout import identity, keyed, packed_row
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import EXCHANGE, READY
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.operators.source.decode import Intake
from kaflow_engine.operators.source.failures import ByClock, Failures
from kaflow_engine.operators.source.keys import read_keys
from kaflow_engine.operators.source.places import places_of

NOT_SEEN, SKIPPED, NULL_KEY, FILTERED, USED = range(5)
"""What became of a record in a table; of several tables of one chain the greatest counts."""

Fates = np.ndarray[tuple[int], np.dtype[np.int8]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInput:
    """The records of a topic that a table sees."""

    flow: Flow
    table: Materialize
    driving: Driving
    batch: BatchContext
    intake: Intake
    source: str
    """SELECT of `rn` and the columns `alias.column` from `rows`."""
    rows: pa.Table
    """Those with a value: what `source` reads, `$time` and `$ts`."""
    nulls: pa.Table
    """Those without one: `rn`, `$time` and `$ts`."""
    skipped: pa.Table
    """The `rn` of those without one, unless they delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """What records become."""

    rows: pa.Table
    """Schema EXCHANGE; without a payload they delete."""
    fates: Fates
    """Of each record of the intake; not of those on which the SQL fails."""
    bad: Sequence[BadRecord]


class TableRecords:
    """What becomes of one topic's records in tables.

    Args:
        flow: What runs.
        batch: Which batch.
        failures: Takes those on which the SQL fails.
    """

    def __init__(self, flow: Flow, batch: BatchContext, failures: Failures) -> None:
        self._flow, self._batch, self._failures = flow, batch, failures
        self._fates: dict[int, Fates] = {}

    def clear(self) -> None:
        """Forget what became of records."""
        self._fates.clear()

    def rows(
        self, by_clock: ByClock, edge: Driving, table: Materialize, source: str, rows: pa.Table
    ) -> pa.Table:
        """Return the rows and deletes that records are to a table, schema EXCHANGE.

        Args:
            by_clock: The records by the clock of the edge.
            edge: Along which the records come.
            table: Where they go.
            source: SELECT of `rn` and the columns `alias.column` from `rows`.
            rows: The records with a value, by `rn`.
        """
        intake, roles = by_clock.intake, by_clock.roles
        given = TableInput(
            flow=self._flow,
            table=table,
            driving=edge,
            batch=self._batch,
            intake=intake,
            source=source,
            rows=rows,
            nulls=roles.seen(edge, intake.tombstones),
            skipped=roles.seen(edge, pa.table({"rn": intake.nulls})),
        )
        found = table_rows(given)
        fates = self._fates.setdefault(edge.chain, found.fates)
        np.maximum(fates, found.fates, out=fates)
        self._failures.set_of_chain(edge, found.bad)
        return found.rows

    def count(self, counters: Counter[str]) -> None:
        """Count the records that are no dead letters."""
        for number, fates in self._fates.items():
            fates[[*self._failures.lost(number)]] = NOT_SEEN
            counts = np.bincount(fates, minlength=USED + 1).tolist()
            counters["used"] += counts[USED]
            counters["filtered"] += counts[FILTERED]
            counters["skipped"] += counts[SKIPPED] + counts[NULL_KEY]
            counters["null_key"] += counts[NULL_KEY]


def table_rows(given: TableInput) -> TableRows:
    """Return the rows and deletes that records are to a table, and what became of each record.

    A record that does not pass the filter, or on which it fails, deletes what its key had.
    """
    fates = np.full(given.intake.records.num_rows, NOT_SEEN, np.int8)
    fates[given.skipped["rn"].to_numpy()] = SKIPPED
    found, failed = guarded(_rows_sql(given.table, given.driving.filter, given.source), given.rows)
    passed = pc.or_(found["gone"], pc.is_valid(found["payload"]))
    _note(fates, found, pc.if_else(passed, USED, FILTERED))
    deleted, bad = _deletes(given)
    _note(fates, deleted, pa.repeat(USED, deleted.num_rows))
    tables = [_addressed(given, found, given.rows), _addressed(given, deleted, given.nulls)]
    if failed:
        tables.append(_addressed(given, _failing(given, failed), given.rows))
    return TableRows(rows=pa.concat_tables(tables), fates=fates, bad=(*bad_records(failed), *bad))


def _rows_sql(table: Materialize, where: str | None, source: str) -> str:
    """Return a SELECT of `rn`, the key behind its shard byte, whether the record says that its row
    is gone, and the packed row where it is there and passes."""
    gone = f"coalesce(({table.operation}) = 'd', FALSE)" if table.operation else "FALSE"
    packed = packed_row(table.columns)
    payload = f"CASE WHEN {gone} THEN NULL WHEN {where or 'TRUE'} THEN {packed} END"
    made = f"SELECT rn, {_key(table)} AS k, {gone} AS gone, {payload} AS payload FROM {source}"
    return f"SELECT rn, {keyed('k')} AS key, gone, payload FROM ({made})"


def _key(table: Materialize) -> str:
    missing = " OR ".join(f"({sql}) IS NULL" for _, sql in table.keys)
    return f"CASE WHEN NOT ({missing}) THEN {identity(table.keys)} END"


def _failing(given: TableInput, failed: Sequence[BadRow]) -> pa.Table:
    """Return deletes for records whose key is known, though the filter fails on them."""
    rows = keep(given.rows, pc.is_in(given.rows["rn"], _numbers(failed)))
    operation = f", {given.table.operation} AS operation" if given.table.operation else ""
    made = f"SELECT rn, {_key(given.table)} AS k{operation} FROM {given.source}"
    found, _ = guarded(f"SELECT * EXCLUDE (k), {keyed('k')} AS key FROM ({made})", rows)
    return found


def _deletes(given: TableInput) -> tuple[pa.Table, list[BadRecord]]:
    """Return what records without a value delete: `rn` and key, and those whose key is none."""
    table, nulls = given.table, given.nulls
    if table.deletes is None or not nulls.num_rows:
        return pa.table({"rn": nulls["rn"].slice(0, 0), "key": pa.array([], pa.binary())}), []
    topic = given.intake.topic
    raw = given.intake.records["key"].take(nulls["rn"])
    keys = read_keys(topic, raw, given.intake.schema_by_id)
    read = pa.table({"rn": nulls["rn"], f"{given.driving.alias}.{KEY}": keys.values})
    bad = [
        BadRecord(row=nulls["rn"][place].as_py(), phase="decode", error="InvalidKey", message=why)
        for place, why in keys.wrong.items()
    ]
    lost = pc.is_in(read["rn"], pa.array([one.row for one in bad], pa.int64()))
    columns = (column for column, _ in table.keys)
    keys = list(zip(columns, table.deletes, strict=True))
    missing = " OR ".join(f"({sql}) IS NULL" for sql in table.deletes)
    made = f"SELECT rn, CASE WHEN NOT ({missing}) THEN {identity(keys)} END AS k FROM rows"
    sql = f"SELECT rn, {keyed('k')} AS key FROM ({made})"
    found, failed = guarded(sql, keep(read, pc.invert(lost)))
    return found, [*bad, *bad_records(failed)]


def _note(fates: Fates, found: pa.Table, fate: pa.Array | pa.ChunkedArray) -> None:
    known = pc.if_else(pc.is_valid(found["key"]), fate, NULL_KEY)
    fates[found["rn"].to_numpy()] = known.to_numpy(zero_copy_only=False)


def _addressed(given: TableInput, found: pa.Table, timed: pa.Table) -> pa.Table:
    """Return rows with a key, schema EXCHANGE, with where they come from."""
    found = keep(found, pc.is_valid(found["key"]))
    if not found.num_rows:
        return EXCHANGE.empty_table()
    flow = given.flow
    return exchange_rows(
        found.num_rows,
        target=target_of(flow, given.table),
        part=pa.array(first_parts(found["key"].combine_chunks(), flow.partitions)),
        kind=READY,
        key=found["key"],
        payload=found["payload"] if "payload" in found.column_names else None,
        counted=False,
        forced=False,
        **places_of(given.intake, given.batch, found, timed),
    )


def _numbers(failed: Sequence[BadRow]) -> pa.Array:
    return pa.array([bad.row for bad in failed], pa.int64())

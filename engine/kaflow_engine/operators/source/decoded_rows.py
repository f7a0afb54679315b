"""What the records of a topic by one clock are: driving rows, sides' records, rows of tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import KeyedJoin
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.flow.tables import Materialize
from kaflow_engine.formats.pick import keep, pick
from kaflow_engine.operators.handover import HandTo, Leaving
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import RAW, expiry_letter, source_letters
from kaflow_engine.operators.row_errors.quarantine import BadRow, bad_records, guarded
from kaflow_engine.operators.rows.layout import batch_time_column, keyed, packed
from kaflow_engine.operators.rows.partitioning import keyless_parts, parts_of, record_part
from kaflow_engine.operators.rows.reports import (
    exchange_rows,
)
from kaflow_engine.operators.rows.schemas import DRIVING, EXCHANGE, SIDE
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.operators.source.failures import ByClock, Failures
from kaflow_engine.operators.source.keys import read_keys
from kaflow_engine.operators.source.places import places_of
from kaflow_engine.operators.source.roles import without
from kaflow_engine.operators.source.table_records import TableRecords


class DecodedRows:
    """The rows that one topic's records make by one of its clocks."""

    def __init__(
        self,
        flow: Flow,
        by_clock: ByClock,
        batch: BatchContext,
        failures: Failures,
        tables: TableRecords,
        counters: Counter[str],
        hand_to: HandTo,
    ) -> None:
        self.flow, self.batch, self.hand_to = flow, batch, hand_to
        self.by_clock, self.intake, self.roles = by_clock, by_clock.intake, by_clock.roles
        self.topic: TopicParams = by_clock.intake.topic
        self.good: pa.Table = by_clock.intake.rows
        self.failures, self.tables, self.counters = failures, tables, counters

    @property
    def timed(self) -> pa.Table:
        """`rn` and `$ts` of the records that have an event time."""
        both = (self.intake.rows, self.intake.tombstones)
        return pa.concat_tables([each.select(["rn", "$ts"]) for each in both])

    def uses(self) -> Iterator[pa.Table]:
        """Yield the rows of the records that have not failed."""
        self.good = without(self.intake.rows, self.failures.numbers)
        for join, index in self.roles.sides:
            yield self._side(join, index)
            yield self._tombstones(join, index)
        for edge in self.roles.readers:
            table = self.roles.table_of(edge)
            yield self._driving(edge) if table is None else self._to_table(edge, table)

    def _source(self, role: Driving | None, alias: str, raw: bool = False) -> tuple[str, pa.Table]:
        """Return a SELECT with columns named `alias.column`, and the rows it reads."""
        rows = self.roles.seen(role, self.good)
        names = [
            f"{identifier(f'c.{c.name}')} AS {identifier(f'{alias}.{c.name}')}"
            for c in (*self.topic.columns, *self.topic.record_columns)
        ]
        if raw:
            places = rows.column("rn")
            for name in ("key", "value", "timestamp", "headers"):
                rows = rows.append_column(f"${name}", pick(self.intake.records[name], places))
            names += ['"$key"', '"$value"', '"$timestamp"', '"$headers"']
        chosen = ", ".join(["rn", batch_time_column(self.batch.batch_time), *names])
        return f"(SELECT {chosen} FROM rows)", rows

    def _side(self, join: KeyedJoin, index: int) -> pa.Table:
        side = join.sides[index]
        source, rows = self._source(None, side.alias)
        payload = packed(side.alias, side.columns)
        where = ""
        if side.filter and side.role == "event":
            where = f" WHERE {side.filter}"
        elif side.filter:
            payload = f"CASE WHEN {side.filter} THEN {payload} END"
        sql = f"SELECT rn, {side.key} AS k, {payload} AS payload FROM {source}{where}"
        found, failed = guarded(f"SELECT rn, {keyed('k')} AS key, payload FROM ({sql})", rows)
        self._fail(failed)
        known = found.column("key").is_valid()
        self.counters["null_key"] += found.num_rows - (pc.sum(known).as_py() or 0)
        found = keep(found, known)
        return self._travelling(
            join, found, self.good, kind=SIDE, side=index, payload=found["payload"]
        )

    def _tombstones(self, join: KeyedJoin, index: int) -> pa.Table:
        dead, side = self.roles.seen(None, self.intake.tombstones), join.sides[index]
        if side.role != "dimension" or not dead.num_rows:
            return EXCHANGE.empty_table()
        if not side.tombstones:
            self.counters["tombstones_ignored"] += dead.num_rows
            return EXCHANGE.empty_table()
        raw = self.intake.records.column("key").take(dead.column("rn"))
        keys = read_keys(self.topic, raw, self.intake.schema_by_id)
        rows = pa.table({"rn": dead.column("rn"), "key": keys.values})
        found = query(
            f"SELECT rn, {keyed('k')} AS key FROM (SELECT rn, CAST(key AS VARCHAR) AS k FROM rows)",
            rows=rows,
        )
        known = found.column("key").is_valid()
        self.counters["null_key"] += found.num_rows - (pc.sum(known).as_py() or 0)
        return self._travelling(join, found.filter(known), dead, kind=SIDE, side=index)

    def _to_table(self, driving: Driving, table: Materialize) -> pa.Table:
        source, rows = self._source(driving, driving.alias)
        return self.tables.rows(self.by_clock, driving, table, source, rows)

    def _driving(self, driving: Driving) -> pa.Table:
        source, rows = self._source(driving, driving.alias, raw=driving.raw is not None)
        horizon = pa.scalar(self.batch.horizon(driving.chain) - driving.ttl, pa.int64())
        self.counters["late"] += pc.sum(pc.less(rows.column("$ts"), horizon)).as_py() or 0
        where = f" WHERE {driving.filter}" if driving.filter else ""
        match self.roles.readers[driving]:
            case [KeyedJoin() as join]:
                return self._to_join(driving, join, f"{source}{where}", rows)
            case _:
                typed = f"SELECT * FROM {source}{where}"
                gone, rows = self._expired(driving, typed, rows)
                return pa.concat_tables([gone, self._handed_on(driving, typed, rows)])

    def _to_join(self, driving: Driving, join: KeyedJoin, source: str, rows: pa.Table) -> pa.Table:
        payload = packed(driving.alias, driving.columns)
        raw = f"CASE WHEN {driving.raw} THEN {RAW} END" if driving.raw else "NULL::VARCHAR"
        doomed = f"NOT coalesce({driving.needs}, FALSE)" if driving.needs else "FALSE"
        sql = (
            f"SELECT rn, {driving.key} AS k, {payload} AS payload, {raw} AS raw, "
            f"{doomed} AS doomed FROM {source}"
        )
        found, failed = guarded(f"SELECT * EXCLUDE (k), {keyed('k')} AS key FROM ({sql})", rows)
        self._fail(failed)
        self.counters["filtered"] += rows.num_rows - found.num_rows - len(failed)
        return self._travelling(
            join,
            found,
            rows,
            kind=DRIVING,
            payload=found["payload"],
            raw=found["raw"],
            doomed=found["doomed"],
            counted=True,
            forced=False,
        )

    def _expired(self, driving: Driving, typed: str, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Take out rows that can never become complete, where there is no join to wait for.

        Returns:
            Their dead letters, and the other rows.
        """
        needs, on_expiry = driving.needs, driving.on_expiry
        if needs is None or on_expiry == "emit":
            return EXCHANGE.empty_table(), rows
        found, _ = guarded(f"SELECT rn FROM ({typed}) WHERE NOT coalesce({needs}, FALSE)", rows)
        gone = found["rn"].combine_chunks()
        letters = EXCHANGE.empty_table()
        if on_expiry == "dead_letter":
            why = [expiry_letter(driving.ttl)] * len(gone)
            sides = [self.failures.side_of(driving.chain)] * len(gone)
            records = self.intake.records.take(gone)
            letters = source_letters(self.flow, self.topic, records, why, sides)
        self.counters["dead_letter" if letters.num_rows else "expired"] += len(gone)
        return letters, keep(rows, pc.invert(pc.is_in(rows["rn"], value_set=gone)))

    def _handed_on(self, driving: Driving, typed: str, rows: pa.Table) -> pa.Table:
        """Hand rows to the projection at once: a pipeline without joins."""
        alias = driving.alias

        def placed(found: pa.Table) -> pa.Table:
            for name, column in places_of(self.intake, self.batch, found, rows).items():
                found = found.append_column(name, column)
            part = record_part(self.topic.index, found["t_part"], self.flow)
            return found.append_column("part", part)

        taken = self.hand_to(
            self.roles.readers[driving],
            Leaving(
                rows=rows,
                typed=typed,
                packed=lambda columns: (
                    f"SELECT rn, {packed(alias, columns)} AS payload FROM ({typed})"
                ),
                placed=placed,
            ),
        )
        self.counters["filtered"] += rows.num_rows - taken.passed.num_rows - len(taken.bad)
        self.counters["emitted"] += taken.passed.num_rows
        self._fail_in_chain(driving, typed, rows, taken.bad)
        return taken.rows

    def _fail_in_chain(
        self, driving: Driving, typed: str, rows: pa.Table, bad: Sequence[BadRecord]
    ) -> None:
        """Take out of a chain what fails in its projections, and of all roles what fails before."""
        if bad and driving.filter and self.failures.roles > 1:
            failing = pa.array([record.row for record in bad], pa.int64())
            rows = keep(rows, pc.is_in(rows["rn"], failing))
            before = guarded(f"SELECT rn FROM ({typed})", rows)[1]
            self._fail(before)
            early = {record.row for record in before}
            bad = [record for record in bad if record.row not in early]
        self.failures.set_of_chain(driving, bad)

    def _travelling(
        self, join: KeyedJoin, found: pa.Table, timed: pa.Table, **columns: Any
    ) -> pa.Table:
        """Address rows to a join by their key, and add where they come from."""
        places = places_of(self.intake, self.batch, found, timed)
        keyless = keyless_parts(self.flow, join, places["t_part"], places["t_off"])
        return exchange_rows(
            found.num_rows,
            target=target_of(self.flow, join),
            key=found["key"],
            part=parts_of(found["key"], keyless, self.flow.partitions),
            **places,
            **columns,
        )

    def _fail(self, failed: Sequence[BadRow]) -> None:
        self.failures.add(bad_records(failed))

"""The map stage: records to driving rows, sides' records, dead letters and reports."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.plan import Plan, SideParams, TopicParams
from kaflow_engine.formats.pick import keep, pick
from kaflow_engine.operators.output.projection import finish_rows
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import (
    RAW,
    expiry_letter,
    refusal,
    source_letters,
)
from kaflow_engine.operators.row_errors.quarantine import BadRow, guarded
from kaflow_engine.operators.rows.layout import batch_time_column, keyed, packed
from kaflow_engine.operators.rows.partitioning import output_parts, parts_of, spread
from kaflow_engine.operators.rows.reports import (
    bytes_of,
    exchange_rows,
    partition_reports,
    report_rows,
)
from kaflow_engine.operators.rows.schemas import DRIVING, EXCHANGE, READY, SIDE
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.source.decode import Intake, addressed, read_topic


def run_map(plan: Plan, batch: BatchContext, records: pa.Table, task: Task) -> pa.Table:
    """Turn raw records into rows for the first stage that wants them.

    Args:
        plan: What runs.
        batch: Which batch.
        records: Schema RECORDS; any topics and partitions, each partition in offset order.
        task: Where writer schemas come from.

    Returns:
        Schema EXCHANGE.

    Raises:
        SourceError: a bad record in a topic with `on_error: fail`.
    """
    found = [EXCHANGE.empty_table()]
    for topic in plan.topics:
        chosen = keep(records, pc.equal(records.column("topic"), topic.name))
        chosen = addressed(chosen, plan.pipeline)
        if chosen.num_rows:
            intake = read_topic(topic, chosen, batch.batch_time, task.avro_schema)
            found += _MapTopic(plan, batch, intake).rows()
    return pa.concat_tables(found)


class _MapTopic:
    """The rows that one topic's records make."""

    def __init__(self, plan: Plan, batch: BatchContext, intake: Intake) -> None:
        self.plan, self.batch, self.intake = plan, batch, intake
        self.topic: TopicParams = intake.topic
        self.last = plan.stage_count - 1
        self.good: pa.Table = intake.rows
        self.counters: Counter[str] = Counter()
        self.bad: dict[int, BadRecord] = {}
        for bad in intake.bad:
            self.bad.setdefault(bad.row, bad)

    def rows(self) -> Iterator[pa.Table]:
        known = -1
        used: list[pa.Table] = []
        while known < len(self.bad):  # a record that fails in one role is taken out of all
            known = len(self.bad)
            self.counters.clear()
            self.good = self._without_bad()
            used = list(self._uses())
            if self._roles <= 1:
                break
        yield from used
        yield self._dead()
        self._count()
        timed = [t.select(["rn", "$ts"]) for t in (self.intake.rows, self.intake.tombstones)]
        read = partition_reports(self.topic.name, self.intake.records, pa.concat_tables(timed))
        sizes = {self.topic.name: bytes_of(self.intake.records)}
        own = {"counters": dict(self.counters), "sizes": sizes}
        yield report_rows(self.last, [*read, own])

    @property
    def _roles(self) -> int:
        sides = (side for step in self.plan.steps for side in step.sides)
        return sum(side.topic == self.topic.index for side in sides) + int(self.topic.driving)

    def _uses(self) -> Iterator[pa.Table]:
        for number, step in enumerate(self.plan.steps, 1):
            for i, side in enumerate(step.sides):
                if side.topic == self.topic.index:
                    yield self._side(number, i, side)
                    yield self._tombstones(number, i, side)
        if self.topic.driving:
            yield self._driving()

    def _without_bad(self) -> pa.Table:
        rows = self.intake.rows
        if not self.bad:
            return rows
        return rows.filter(pc.invert(pc.is_in(rows["rn"], pa.array(list(self.bad), pa.int64()))))

    def _source(self, alias: str, raw: bool = False) -> tuple[str, pa.Table]:
        """Return a SELECT with columns named `alias.column`, and the rows it reads."""
        rows = self.good
        names = [
            f"{identifier(f'c.{c.name}')} AS {identifier(f'{alias}.{c.name}')}"
            for c in self.topic.columns
        ]
        if raw:
            places = rows.column("rn")
            for name in ("key", "value", "timestamp", "headers"):
                rows = rows.append_column(f"${name}", pick(self.intake.records[name], places))
            names += ['"$key"', '"$value"', '"$timestamp"', '"$headers"']
        chosen = ", ".join(["rn", batch_time_column(self.batch.batch_time), *names])
        return f"(SELECT {chosen} FROM rows)", rows

    def _side(self, stage: int, index: int, side: SideParams) -> pa.Table:
        source, rows = self._source(side.alias)
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
            found, self.good, stage=stage, kind=SIDE, side=index, payload=found["payload"]
        )

    def _tombstones(self, stage: int, index: int, side: SideParams) -> pa.Table:
        dead = self.intake.tombstones
        if side.role != "dimension" or not dead.num_rows:
            return EXCHANGE.empty_table()
        if not side.tombstones:
            self.counters["tombstones_ignored"] += dead.num_rows
            return EXCHANGE.empty_table()
        raw = self.intake.records.column("key").take(dead.column("rn"))
        rows = pa.table({"rn": dead.column("rn"), "raw": raw})
        found = query(
            f"SELECT rn, {keyed('k')} AS key FROM (SELECT rn, TRY(decode(raw)) AS k FROM rows)",
            rows=rows,
        )
        known = found.column("key").is_valid()
        self.counters["null_key"] += found.num_rows - (pc.sum(known).as_py() or 0)
        return self._travelling(found.filter(known), dead, stage=stage, kind=SIDE, side=index)

    def _driving(self) -> pa.Table:
        driving = self.plan.driving
        source, rows = self._source(driving.alias, raw=driving.raw is not None)
        horizon = self.batch.horizon - driving.ttl
        stamps = rows.column("$ts")
        self.counters["late"] += (
            pc.sum(pc.less(stamps, pa.scalar(horizon, pa.int64()))).as_py() or 0
        )
        where = f" WHERE {driving.filter}" if driving.filter else ""
        if not self.plan.steps:
            typed = f"SELECT * FROM {source}{where}"
            gone, rows = self._expired(typed, rows)
            return pa.concat_tables([gone, self._finished(typed, rows)])
        payload = packed(driving.alias, driving.columns)
        raw = f"CASE WHEN {driving.raw} THEN {RAW} END" if driving.raw else "NULL::VARCHAR"
        doomed = f"NOT coalesce({driving.needs}, FALSE)" if driving.needs else "FALSE"
        sql = (
            f"SELECT rn, {driving.key} AS k, {payload} AS payload, {raw} AS raw, "
            f"{doomed} AS doomed FROM {source}{where}"
        )
        found, failed = guarded(f"SELECT * EXCLUDE (k), {keyed('k')} AS key FROM ({sql})", rows)
        self._fail(failed)
        self.counters["filtered"] += rows.num_rows - found.num_rows - len(failed)
        return self._travelling(
            found,
            rows,
            stage=1,
            kind=DRIVING,
            payload=found["payload"],
            raw=found["raw"],
            doomed=found["doomed"],
            counted=True,
            forced=False,
        )

    def _expired(self, typed: str, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Take out rows that can never become complete, where there is no join to wait for.

        Returns:
            Their dead letters, and the other rows.
        """
        needs, on_expiry = self.plan.driving.needs, self.plan.on_expiry
        if needs is None or on_expiry == "emit":
            return EXCHANGE.empty_table(), rows
        found, _ = guarded(f"SELECT rn FROM ({typed}) WHERE NOT coalesce({needs}, FALSE)", rows)
        gone = found["rn"].combine_chunks()
        letters = EXCHANGE.empty_table()
        if on_expiry == "dead_letter":
            why = [expiry_letter(self.plan.driving.ttl)] * len(gone)
            letters = source_letters(self.plan, self.topic, self.intake.records.take(gone), why)
        self.counters["dead_letter" if letters.num_rows else "expired"] += len(gone)
        return letters, keep(rows, pc.invert(pc.is_in(rows["rn"], value_set=gone)))

    def _finished(self, typed: str, rows: pa.Table) -> pa.Table:
        """Finish rows at once: a pipeline without joins."""
        done = finish_rows(self.plan.finish, typed, rows)
        self.counters["filtered"] += rows.num_rows - done.rows.num_rows - len(done.bad)
        self.counters["emitted"] += done.rows.num_rows
        for bad in done.bad:
            self.bad.setdefault(bad.row, bad)
        keys = done.rows.column("out_key")
        if self.plan.last_exchange:
            part: Any = output_parts(keys, self.plan.partitions)
        else:
            places = pick(self.intake.records["partition"], done.rows["rn"])
            part = pc.add(pc.multiply(places.cast(pa.int64()), 256), self.topic.index)
        return self._travelling(
            done.rows,
            rows,
            stage=self.last,
            kind=READY,
            part=part,
            key=keys,
            value=done.rows["value"],
        )

    def _travelling(self, found: pa.Table, timed: pa.Table, **columns: Any) -> pa.Table:
        """Add position and event time, looked up by `rn`, to the columns of travelling rows."""
        numbers = found.column("rn").to_numpy()
        known = timed.column("rn").to_numpy()
        places = (
            pa.array(np.searchsorted(known, numbers)) if len(numbers) else pa.array([], pa.int64())
        )
        times = pick(timed["$time"], places)
        records = pick(self.intake.records.select(["partition", "offset"]), found["rn"])
        partition = records.column("partition").cast(pa.int64())
        offset = records.column("offset")
        if "key" in found.column_names and "key" not in columns:
            columns["key"] = found.column("key")
            columns["part"] = parts_of(
                columns["key"],
                spread(partition, offset, self.plan.partitions),
                self.plan.partitions,
            )
        return exchange_rows(
            found.num_rows,
            t_phase=1,
            t_time=times,
            t_role=self.topic.rank,
            t_topic=self.topic.index,
            t_part=partition,
            t_off=offset,
            d_batch=self.batch.batch,
            d_time=times,
            d_part=partition,
            d_off=offset,
            ts=pick(timed["$ts"], places),
            **columns,
        )

    def _fail(self, failed: Sequence[BadRow]) -> None:
        for bad in failed:
            record = BadRecord(row=bad.row, phase="sql", error=bad.error, message=bad.message)
            self.bad.setdefault(bad.row, record)

    def _dead(self) -> pa.Table:
        bad = sorted(self.bad.values(), key=lambda record: record.row)
        if not bad or self.topic.on_error == "skip":
            return EXCHANGE.empty_table()
        records = self.intake.records.take([record.row for record in bad])
        if self.topic.on_error == "fail":
            partition, offset = (records[name][0].as_py() for name in ("partition", "offset"))
            raise refusal(self.topic, partition, offset, bad[0])
        return source_letters(self.plan, self.topic, records, bad)

    def _count(self) -> None:
        bad = "skipped" if self.topic.on_error == "skip" else "dead_letter"
        if self.topic.driving:
            self.counters["read"] += self.intake.records.num_rows
            self.counters["skipped"] += self.intake.nulls
            self.counters[bad] += len(self.bad)
        else:
            self.counters["side_read"] += self.intake.records.num_rows
            if not self.topic.dimension:
                self.counters["skipped_side"] += self.intake.nulls
            name = "skipped_side" if bad == "skipped" else "side_dead_letters"
            self.counters[name] += len(self.bad)

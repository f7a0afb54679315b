"""The decode operator: records to driving rows, sides' records, dead letters and reports."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.flow import Flow
from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.handover import HandTo
from kaflow_engine.operators.rows.reports import (
    bytes_of,
    partition_reports,
    report_rows,
)
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.source.decode import addressed, read_topic
from kaflow_engine.operators.source.decoded_rows import DecodedRows
from kaflow_engine.operators.source.failures import ByClock, Failures
from kaflow_engine.operators.source.roles import roles_of
from kaflow_engine.operators.source.table_records import TableRecords


def run_decode(
    flow: Flow,
    source: int,
    batch: BatchContext,
    records: pa.Table,
    task: Task,
    hand_to: HandTo,
) -> pa.Table:
    """Turn the raw records of a topic into rows for the operators that read them, by any clock.

    Args:
        flow: What runs.
        source: Which topic of it.
        batch: Which batch.
        records: Schema RECORDS; any topics and partitions, each partition in offset order.
        task: Where writer schemas come from.
        hand_to: Gives rows of driving records to projections, where no join takes them.

    Returns:
        Schema EXCHANGE.

    Raises:
        SourceError: a bad record in a topic with `on_error: fail`.
    """
    topic = flow.sources[source]
    chosen = keep(records, pc.equal(records.column("topic"), topic.name))
    chosen, meant = addressed(chosen, flow.pipeline)
    if not chosen.num_rows:
        return EXCHANGE.empty_table()
    schema = partial(task.avro_schema, cluster=topic.cluster)
    intakes = read_topic(topic, chosen, batch.batch_time, schema)
    clocks = [
        ByClock(intake=intake, roles=roles)
        for intake, roles in zip(intakes, roles_of(flow, source, meant), strict=True)
    ]
    return pa.concat_tables(_rows(flow, clocks, batch, chosen, hand_to))


def _rows(
    flow: Flow,
    clocks: Sequence[ByClock],
    batch: BatchContext,
    records: pa.Table,
    hand_to: HandTo,
) -> Iterator[pa.Table]:
    """Yield the rows that one topic's records make by all of its clocks, letters and reports."""
    topic = flow.sources[clocks[0].roles.decode.source]
    failures = Failures(flow, clocks)
    tables = TableRecords(flow, batch, failures)
    counters: Counter[str] = Counter()
    made = [DecodedRows(flow, each, batch, failures, tables, counters, hand_to) for each in clocks]
    known = -1
    used: list[pa.Table] = []
    while known < len(failures):  # a record that fails in one role is taken out of all
        known = len(failures)
        counters.clear()
        tables.clear()
        used = [rows for each in made for rows in each.uses()]
        if failures.roles <= 1:
            break
    yield from used
    yield failures.letters()
    failures.count(counters)
    tables.count(counters)
    read = partition_reports(topic.name, records, {e.topic.clock_name: e.timed for e in made})
    sizes = {topic.name: bytes_of(records)}
    own = {"counters": dict(counters), "sizes": sizes}
    yield report_rows([*read, own])

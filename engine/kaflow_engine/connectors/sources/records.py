"""Records of sources that are no topics: they have no keys, and say where they come from."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from kaflow_engine.connectors.sources.contract import RangeRead
from kaflow_engine.duck.queries import query
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.formats.json.encode import json_object_sql
from kaflow_engine.model.columns import Column
from kaflow_engine.model.letters import FROM, UNREADABLE


def record_batch(
    source: str,
    first: int,
    values: Sequence[bytes | None] | pa.Array,
    timestamps: Sequence[int] | pa.Array,
    place: str,
    unreadable: str | None = None,
    partition: int = 0,
) -> pa.RecordBatch:
    """Return consecutive records of one partition of a source.

    Args:
        source: Its name.
        first: The offset of the first one.
        values: Of each one.
        timestamps: Of each one, epoch milliseconds.
        place: Where they are, such as a path.
        unreadable: Why a record, which stands for what is there, cannot be read.
        partition: Which one.
    """
    count = len(values)
    said = [(FROM, place.encode())]
    said += [] if unreadable is None else [(UNREADABLE, unreadable.encode())]
    headers = pa.array([[{"key": k, "value": v} for k, v in said]], RECORDS.field("headers").type)
    columns = [
        pa.repeat(pa.scalar(source), count),
        pa.repeat(pa.scalar(partition, pa.int32()), count),
        pa.array(range(first, first + count), pa.int64()),
        pa.array(timestamps, pa.int64()),
        pa.nulls(count, pa.binary()),
        pa.array(values, pa.binary()),
        headers.take(pa.repeat(pa.scalar(0, pa.int64()), count)),
    ]
    return pa.record_batch(columns, schema=RECORDS)


def table_of(reads: Iterable[RangeRead]) -> pa.Table:
    """Return the records that tasks would read, as one table."""
    batches = [batch for read in reads for batch in read()]
    return pa.Table.from_batches(batches, schema=RECORDS)


def json_values(rows: pa.Table, columns: Sequence[tuple[Column, str]]) -> pa.Array:
    """Return rows as JSON objects.

    Args:
        rows: What columns are computed over.
        columns: The members of each object, with the SQL of their values.
    """
    sql = f"SELECT CAST({json_object_sql(columns)} AS BLOB) AS value FROM rows"
    return query(sql, rows).column("value").combine_chunks()

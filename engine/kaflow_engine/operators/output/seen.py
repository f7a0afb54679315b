"""The rows of an output as a side output sees them: typed columns of what is about to leave."""

from collections.abc import Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import columns_of
from kaflow_engine.flow.records import (
    DELETED,
    EVENT_TIME,
    KEY,
    SOURCE_OFFSET,
    SOURCE_PARTITION,
)
from kaflow_engine.flow.sinks import ConnectorSink, Sink, TableSink, TopicSink
from kaflow_engine.formats.contract import Evidence, format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows import row_text


def seen_columns(flow: Flow, sink: Sink) -> tuple[Column, ...]:
    """Return the columns of the rows that leave for a sink, without those beside them."""
    match sink:
        case ConnectorSink(columns=columns):
            return columns
        case TableSink(table=table):
            return table.columns
        case TopicSink(format=form, avro_schema=schema):
            known = None
            if schema is not None:
                known = format_of(form).columns(Evidence.of_schema(schema))
            return known or columns_of(flow, sink)
        case _:
            assert_never(sink)


def seen_rows(sink: Sink, columns: Sequence[Column], rows: pa.Table) -> pa.Table:
    """Return rows of schema OUTPUT as typed columns, in their order.

    Args:
        sink: Where they go.
        columns: Of the rows.
        rows: Those of the sink.

    Returns:
        The columns, all NULL of a row without a value, and those of `flow.records` beside them.
    """
    match sink:
        case ConnectorSink() | TableSink():
            texts = f"SELECT {row_text.unpack('decode(value)')} AS texts FROM rows"
            names = ", ".join(row_text.columns_of("texts", columns))
            values = query(f"SELECT {names} FROM ({texts})", rows)
        case TopicSink():
            values = _decoded(sink, columns, rows["value"].combine_chunks())
        case _:
            assert_never(sink)
    beside = {
        KEY: rows["key"],
        DELETED: rows["value"].is_null(),
        EVENT_TIME: rows["timestamp"],
        SOURCE_PARTITION: rows["source_partition"],
        SOURCE_OFFSET: rows["source_offset"],
    }
    return pa.table({**dict(zip(values.column_names, values.columns, strict=True)), **beside})


def _decoded(sink: TopicSink, columns: Sequence[Column], values: pa.Array) -> pa.Table:
    """Return what the values of a topic hold, read as whoever consumes it reads them."""
    written = values.is_valid()
    found = format_of(sink.format).decode(
        values.filter(written), columns, lambda _: sink.avro_schema or ""
    )
    if found.bad:
        raise ValueError(f"a value that was written cannot be read: {found.bad[0].message}")
    # the place of each value among those that are there
    there = written.to_numpy(zero_copy_only=False)
    return found.table.take(pa.array(np.cumsum(there) - 1, pa.int64(), mask=~there))

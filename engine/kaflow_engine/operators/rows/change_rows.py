"""Rows on their way to a sink that a file names: texts to typed columns, with what happens."""

from typing import TYPE_CHECKING

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import (
    DELETED,
    EVENT_TIME,
    KEY,
    SLOT,
    SOURCE_OFFSET,
    SOURCE_PARTITION,
)
from kaflow_engine.operators.rows.row_text import columns_of, unpack

if TYPE_CHECKING:
    import pyarrow as pa  # planning needs the names only, and it takes long to load

    from kaflow_engine.flow.sinks import ConnectorSink

_BESIDE = {
    KEY: "decode(key)",
    DELETED: "value IS NULL",
    SLOT: "slot",
    EVENT_TIME: "timestamp",
    SOURCE_PARTITION: "source_partition",
    SOURCE_OFFSET: "source_offset",
}


def change_rows(sink: "ConnectorSink", rows: "pa.Table") -> "pa.Table":
    """Return rows as a sink takes them, in their order; of one that goes, all columns are NULL.

    Args:
        sink: Which one.
        rows: Schema OUTPUT; values are texts.

    Returns:
        The columns of the sink, and those of `flow.records`.
    """
    beside = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in _BESIDE.items())
    names = ", ".join([*columns_of("texts", sink.columns), *(identifier(name) for name in _BESIDE)])
    texts = f"{unpack('decode(value)')} AS texts"
    return query(f"SELECT {names} FROM (SELECT {texts}, {beside} FROM rows)", rows)

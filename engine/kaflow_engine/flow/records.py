"""Records of sources, and rows for sinks: what connectors and operators hand to each other."""

import pyarrow as pa

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

RECORDS = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
    ]
)
"""Raw records, as a source gives them; `timestamp` in epoch milliseconds."""

OUTPUT = pa.schema(
    [
        pa.field("slot", pa.int32()),
        pa.field("topic", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("timestamp", pa.int64()),
        pa.field("headers", HEADERS),
        pa.field("partition", pa.int32()),
        pa.field("kind", pa.int8()),
        pa.field("source_partition", pa.int32()),
        pa.field("source_offset", pa.int64()),
    ]
)
"""Emitted rows: `slot` is the delivery partition that a marker counts, `topic` the name of the
topic or table, `kind` which of them and whether it is a dead letter, `partition` null where the key
decides. A row names its driving record; a dead letter has that in its headers."""

ROW, DEAD_LETTER, TABLE_ROW = 0, 1, 2
"""Kinds of emitted rows: for a topic, for the topic of dead letters, for a sink that takes columns,
such as a table."""

KEY, DELETED, SLOT, EVENT_TIME, SOURCE_PARTITION, SOURCE_OFFSET = (
    "$key",
    "$deleted",
    "$slot",
    "$event_time",
    "$source_partition",
    "$source_offset",
)
"""Columns beside those of a row for a sink that a file names: the text of its key, whether it goes,
its delivery partition, its event time in epoch milliseconds, and the record that it is made of."""

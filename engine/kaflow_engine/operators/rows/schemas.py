"""The Arrow schemas that tasks take and give."""

import pyarrow as pa

DRIVING, SIDE, DEAD, REPORT, READY, NOTE, TAKEN, CLOSED = range(8)
"""Kinds of travelling rows: a driving row, a side's record, a dead letter, a report to the driver,
a finished output row, a note to the ledger (`side` holds bits of what happened to rows of the
driving record, `t_off` by how many its waiting rows changed), a row that is taken away from an
aggregate, and a finished row of which no more changes come, so that what is held of it leaves.
`side` of a finished row is the target of its projection, also while a ledger has it; of a dead
letter about one of several chains, the target of that chain's first projection. A row of a table
that an aggregate takes has its identity in `value`. The headers of a row for a topic, as text, are
its `payload`."""

LETTERS, REPORTS = -1, -2
"""Targets that are no operator: dead letters leave at the last level, reports go to the driver."""

NO_RECORD = -1
"""Partition and offset where no single record has made a row or a dead letter."""

BEGINS, TIMED, OF_RECORDS = -1, 0, 1
"""Phases of a batch: rows that tables had, for what begins with them; what is sent because of the
time; and what records have made."""

TRIGGER = ("t_phase", "t_time", "t_role", "t_topic", "t_part", "t_off")
ORIGIN = ("d_batch", "d_time", "d_part", "d_off")
MEMBERS = pa.list_(pa.int64())

EXCHANGE = pa.schema(
    [
        pa.field("target", pa.int32()),
        pa.field("part", pa.int32()),
        pa.field("kind", pa.int32()),
        pa.field("side", pa.int32()),
        pa.field("key", pa.binary()),
        *[pa.field(name, pa.int64()) for name in (*TRIGGER, *ORIGIN)],
        pa.field("ts", pa.int64()),
        pa.field("members", MEMBERS),
        pa.field("payload", pa.string()),
        pa.field("raw", pa.string()),
        pa.field("value", pa.binary()),
        pa.field("doomed", pa.bool_()),
        pa.field("counted", pa.bool_()),
        pa.field("forced", pa.bool_()),
    ]
)
"""Rows between operators: where to (see `flow.graph.target_of`), the join key behind its shard
byte, the position of what triggered the row, the position of its driving record, the positions of
its event sides, and the columns as a JSON list of texts. A side's record has its own position as
trigger. `doomed`: can never become complete; `counted`: decides its record's class; `forced`: sent
on because its time is up."""

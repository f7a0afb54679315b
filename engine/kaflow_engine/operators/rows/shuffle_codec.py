"""How EXCHANGE rows travel between tasks: as Arrow streams, one for each task that takes them.

Most rows leave most columns null, and what is null in all of them does not travel.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from kaflow_engine.operators.rows.schemas import EXCHANGE

_CHUNK = 50_000
"""Rows of a stream, at most."""


def to_streams(rows: pa.Table, tasks: int) -> Iterator[tuple[int, bytes]]:
    """Yield rows of schema EXCHANGE for each of `tasks` tasks, with its number.

    A row goes to the task that its `part` modulo `tasks` is the number of.
    """
    if not rows.num_rows:
        return
    used = [name for name in EXCHANGE.names if rows[name].null_count < rows.num_rows]
    some = rows.select(used)
    task = np.remainder(rows["part"].to_numpy(), tasks)
    counts = np.bincount(task, minlength=tasks)
    if np.count_nonzero(counts) > 1:
        some = some.take(pa.array(np.argsort(task, kind="stable")))
    end = 0
    for number, count in enumerate(counts.tolist()):
        start, end = end, end + count
        for at in range(start, end, _CHUNK):
            yield number, to_stream(some.slice(at, min(_CHUNK, end - at)))


def of_streams(streams: Iterator[bytes | pa.Buffer]) -> pa.Table:
    """Return the rows (EXCHANGE) of streams."""
    tables = [of_stream(stream) for stream in streams]
    if not tables:
        return EXCHANGE.empty_table()
    return pa.concat_tables([_whole(table) for table in tables])


def to_stream(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def of_stream(data: bytes | pa.Buffer) -> pa.Table:
    """Return the table of an Arrow stream."""
    return pa.ipc.open_stream(data).read_all()


def _whole(table: pa.Table) -> pa.Table:
    there = set(table.column_names)
    columns = [
        table[field.name] if field.name in there else pa.nulls(table.num_rows, field.type)
        for field in EXCHANGE
    ]
    return pa.Table.from_arrays(columns, schema=EXCHANGE)

"""Tables whose rows have the number of their batch, and stay until the next batch but one."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.postgres.names import Names, statement
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from psycopg import Connection

_KEPT = 2
"""Batches."""


def with_batch_column(output: Output) -> Output:
    """Return an output with the column of numbers, where it has one."""
    name = output.settings.get("batch_column")
    if not name:
        return output
    return replace(output, columns=(*output.columns, Column(str(name), "BIGINT")))


def numbered(output: Output, rows: pa.Table, batch: int) -> pa.Table:
    """Return rows with their number, where the output has a column for it."""
    name = output.settings.get("batch_column")
    if not name:
        return rows
    return rows.append_column(str(name), pa.repeat(pa.scalar(batch, pa.int64()), rows.num_rows))


def forget_batches(connection: "Connection[Any]", output: Output, batch: int) -> None:
    """Delete rows of earlier batches, and of other states; tasks leave those to each other."""
    name = output.settings.get("batch_column")
    if not name:
        return
    table, column = Names(output).table, identifier(str(name))
    gone = f"{column} <= %s OR {column} > %s"
    some = f"SELECT ctid FROM {table} WHERE {gone} FOR UPDATE SKIP LOCKED"
    text = f"DELETE FROM {table} WHERE ctid = ANY (ARRAY({some}))"
    connection.execute(statement(text), [batch - _KEPT, batch])

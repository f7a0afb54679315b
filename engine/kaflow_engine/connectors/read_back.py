"""Rows that are read back from an output, for checks: as the columns that were written."""

from collections.abc import Sequence
from typing import Protocol

import duckdb
import pyarrow as pa

from kaflow_engine.connectors.contract import Outlet, Output
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.duck.wide.integers import in_duckdb
from kaflow_engine.errors import SinkUnfit
from kaflow_engine.formats.contract import format_of, no_schema
from kaflow_engine.model.columns import Column


class ReadableOutlet(Outlet, Protocol):
    """Opens outputs of one kind, and reads what they have."""

    def read(self, output: Output, since: int, most: int) -> pa.Table:
        """Return rows that an output has, with its columns and their types.

        Args:
            output: Which one.
            since: Epoch milliseconds; earlier rows are left out where the output knows their time.
            most: Rows.

        Raises:
            SinkError: It is not there, or cannot be read.
        """
        ...


def of_values(
    output: Output, columns: Sequence[Column], values: Sequence[bytes], form: str
) -> pa.Table:
    """Return rows of an output as columns.

    Args:
        output: Which one.
        columns: Of each row.
        values: The rows, one value each.
        form: Their format, a name of `model.formats` that needs no registry.

    Raises:
        SinkUnfit: One of them is no row of the output.
    """
    decoded = format_of(form).decode(pa.array(values, pa.binary()), columns, no_schema)
    if decoded.bad:
        raise _not_ours(output, decoded.bad[0].message)
    return decoded.table


def of_texts(output: Output, rows: Sequence[Sequence[str | None]]) -> pa.Table:
    """Return rows of an output as columns.

    Args:
        output: Which one.
        rows: Its columns as texts: bytes are Base64, lists, maps and structs JSON.

    Raises:
        SinkUnfit: One of them is no row of the output.
    """
    names = [column.name for column in output.columns]
    texts = [[row[place] for row in rows] for place, _ in enumerate(names)]
    table = pa.table([pa.array(each, pa.string()) for each in texts], names)
    return _cast(output, table, {column.name: _of_text(column) for column in output.columns})


def of_columns(output: Output, rows: pa.Table) -> pa.Table:
    """Return rows of an output whose columns hold its types as these.

    Raises:
        SinkUnfit: One of them is no row of the output.
    """
    return _cast(output, rows, {column.name: _of_column(column) for column in output.columns})


def nothing_there(output: Output, what: str) -> SinkUnfit:
    """Return the error of an output that no run has written yet."""
    return SinkUnfit(
        f"{what} of output '{output.name}' is not there",
        hint="run the pipeline first; checks look at what it has written",
    )


def _cast(output: Output, rows: pa.Table, values: dict[str, str]) -> pa.Table:
    listed = ", ".join(
        f"CAST({values[column.name]} AS {in_duckdb(column.type)}) AS {identifier(column.name)}"
        for column in output.columns
    )
    try:
        return query(f"SELECT {listed} FROM rows", rows)
    except duckdb.Error as error:
        raise _not_ours(output, str(error).splitlines()[0]) from error


def _of_text(column: Column) -> str:
    """Return SQL of a value that is a text."""
    name, kind = identifier(column.name), column.type
    if kind == "BLOB":
        return f"from_base64({name})"
    if kind.endswith("]") or kind.startswith(("MAP(", "STRUCT(")):
        return f"CAST({name} AS JSON)"
    return name


def _of_column(column: Column) -> str:
    """Return SQL of a value; seconds are kept as milliseconds, of which there is no cast back."""
    name = identifier(column.name)
    return f"CAST({name} AS TIMESTAMP)" if column.type == "TIMESTAMP_S" else name


def _not_ours(output: Output, why: str) -> SinkUnfit:
    return SinkUnfit(
        f"output '{output.name}' has a row that its pipeline cannot have written: {why}",
        hint="another program writes there, too; let each have a place of its own",
    )

"""SQL that may fail on single rows: the bad rows are taken out, the others go on."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped, and duckdb in part

from dataclasses import dataclass

import duckdb
import pyarrow as pa

from kaflow_engine.formats.duck import query

DATA_ERRORS = (duckdb.DataError, duckdb.InvalidInputException, duckdb.InvalidTypeException)
"""Mistakes of a row; binding, memory and internal errors are not and stop the batch."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row on which the SQL fails."""

    row: int
    """Its value in the column `rn`."""
    error: str
    message: str


def guarded(sql: str, rows: pa.Table) -> tuple[pa.Table, list[BadRow]]:
    """Run SQL over the table `rows`; where it fails, bisect until the bad rows stand alone.

    Args:
        sql: Reads `rows`, works row by row, and may drop rows.
        rows: Any schema with a column `rn` that numbers the rows.
    """
    try:
        return query(sql, rows=rows), []
    except DATA_ERRORS as error:
        if rows.num_rows <= 1:
            number = rows.column("rn")[0].as_py() if rows.num_rows else -1
            empty = query(f"SELECT * FROM ({sql}) LIMIT 0", rows=rows.slice(0, 0))
            return empty, [BadRow(number, error_class(error), error_text(error))]
    half = rows.num_rows // 2
    left, bad_left = guarded(sql, rows.slice(0, half))
    right, bad_right = guarded(sql, rows.slice(half))
    return pa.concat_tables([left, right]), bad_left + bad_right


def error_class(error: BaseException) -> str:
    """Return the class of a DuckDB error in the field's words, such as `ConversionError`."""
    return type(error).__name__.replace("Exception", "Error")


def error_text(error: BaseException) -> str:
    """Return the first line of a DuckDB error without its class."""
    line = str(error).split("\n", 1)[0]
    return line.split("Error: ", 1)[-1]

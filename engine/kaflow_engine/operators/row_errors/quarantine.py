"""SQL that may fail on single rows: the bad rows are taken out, the others go on."""

from collections.abc import Iterable
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.functions.catalogue import CALLING, FAILED
from kaflow_engine.duck.queries import query
from kaflow_engine.errors import RunError
from kaflow_engine.flow.tables import UNKNOWN_OPERATION
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.probe import Suspect, suspects_of

DATA_ERRORS = (duckdb.DataError, duckdb.InvalidInputException, duckdb.InvalidTypeException)
"""Mistakes of a row; binding, memory and internal errors are not and stop the batch."""

FEW = 4
"""Rows that are halved and halved again, without looking for suspects."""

_UNKNOWN = "UnknownOperation"
QUOTED = 2
"""Bad rows of one batch that get the words of DuckDB, which takes a query for each."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row on which the SQL fails."""

    row: int
    """Its value in the column `rn`."""
    error: str
    message: str


def bad_records(failed: Iterable[BadRow]) -> list[BadRecord]:
    """Return rows on which the SQL failed as records that are taken out; where it could not read
    what a record does to its row, the record could not be decoded."""
    return [
        BadRecord(
            row=b.row,
            phase="decode" if b.error == _UNKNOWN else "sql",
            error=b.error,
            message=b.message,
        )
        for b in failed
    ]


def guarded(sql: str, rows: pa.Table) -> tuple[pa.Table, list[BadRow]]:
    """Run SQL over the table `rows`; where it fails, the bad rows are found and left out.

    Args:
        sql: Reads `rows`, works row by row, and may drop rows.
        rows: Any schema with a column `rn` that numbers the rows.
    """
    try:
        return query(sql, rows=rows), []
    except DATA_ERRORS as error:
        _not_of_a_row(error)
        if rows.num_rows <= 1:
            return _nothing(sql, rows), _failed(rows, error)
    if rows.num_rows <= FEW:
        return _halved(sql, rows)
    bad = _look(sql, rows, suspects_of(sql, rows))
    if not bad:
        return _halved(sql, rows)
    known = pc.is_in(
        rows.column("rn"), pa.array([b.row for b in bad], rows.schema.field("rn").type)
    )
    found, more = guarded(sql, rows.filter(pc.invert(known)))
    return found, [*bad, *more]


def _halved(sql: str, rows: pa.Table) -> tuple[pa.Table, list[BadRow]]:
    half = rows.num_rows // 2
    left, bad_left = guarded(sql, rows.slice(0, half))
    right, bad_right = guarded(sql, rows.slice(half))
    return pa.concat_tables([left, right]), bad_left + bad_right


def _look(sql: str, rows: pa.Table, suspects: Iterable[Suspect]) -> list[BadRow]:
    """Return the suspects that are bad: the first in DuckDB's words, the others in ours.

    A query takes a millisecond, so a batch with thousands of bad rows cannot afford one for each.
    """
    bad: list[BadRow] = []
    classes: dict[str, str] = {}
    for asked, suspect in enumerate(suspects):
        error = classes.get(suspect.fails)
        if error is None or asked < QUOTED:
            failed = _alone(sql, rows.slice(suspect.index, 1))
            if failed:
                classes.setdefault(suspect.fails, failed[0].error)
            bad += failed
        else:
            number = rows.column("rn")[suspect.index].as_py()
            bad.append(BadRow(number, error, suspect.message))
    return bad


def _alone(sql: str, row: pa.Table) -> list[BadRow]:
    try:
        query(sql, rows=row)
    except DATA_ERRORS as error:
        return _failed(row, error)
    return []


def _failed(rows: pa.Table, error: BaseException) -> list[BadRow]:
    number = rows.column("rn")[0].as_py() if rows.num_rows else -1
    return [BadRow(number, error_class(error), error_text(error))]


def _nothing(sql: str, rows: pa.Table) -> pa.Table:
    return query(f"SELECT * FROM ({sql}) LIMIT 0", rows=rows.slice(0, 0))


def error_class(error: BaseException) -> str:
    """Return the class of a DuckDB error in the field's words, such as `ConversionError`.

    Raises:
        RunError: It is no mistake of a row.
    """
    _not_of_a_row(error)
    if str(error).startswith(CALLING):
        return "FunctionError"
    if error_text(error).startswith(UNKNOWN_OPERATION):
        return _UNKNOWN
    return type(error).__name__.replace("Exception", "Error")


def error_text(error: BaseException) -> str:
    """Return the first line of a DuckDB error without its class."""
    line = str(error).split("\n", 1)[0]
    if line.startswith(CALLING):
        return line.removeprefix(CALLING).removeprefix(FAILED)
    return line.split("Error: ", 1)[-1]


def _not_of_a_row(error: BaseException) -> None:
    """Stop the batch where Python failed and no function did: memory is used up, or a signal came.

    Raises:
        RunError: It was that.
    """
    line = str(error).split("\n", 1)[0]
    said = line.removeprefix(CALLING)
    if said != line and not said.startswith(FAILED):
        raise RunError(f"a function of the project stopped: {said}")

"""Rows of files that are read back, for checks."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.files.place import Place
from kaflow_engine.connectors.files.rows import NO_VALUE, columns_in_files
from kaflow_engine.connectors.files.types import parted_by
from kaflow_engine.connectors.read_back import of_columns, of_values


def read_rows(output: Output, place: Place, since: int, most: int) -> pa.Table:
    """Return rows of files with the columns of an output, those of the newest files first.

    Args:
        output: Whose.
        place: Where its files lie.
        since: Epoch milliseconds; files that were written before are left out.
        most: Rows.

    Raises:
        OSError: A file cannot be read, or went meanwhile.
        SinkUnfit: There is no such place, or a file holds what the pipeline cannot have written.
    """
    found, left = [_rows(output, None, "")], most
    for name in place.newest(str(output.settings["format"]), since):
        if left <= 0:
            break
        with place.open(name) as file:
            found.append(_rows(output, file, name).slice(0, left))
        left -= found[-1].num_rows
    return pa.concat_tables(found)


def _rows(output: Output, file: BinaryIO | None, called: str) -> pa.Table:
    """Return the rows of a file; None: the columns alone."""
    form, columns = str(output.settings["format"]), columns_in_files(output)
    if file is None or form != "parquet":
        values = [] if file is None else [*_values(file, form)]
        rows = of_values(output, columns, values, "json" if file is None else form)
    else:
        rows = pq.ParquetFile(file).read()
    for name, value in _named(output, called).items():
        rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
    return of_columns(output, rows)


def _named(output: Output, called: str) -> dict[str, str | None]:
    """Return the values that the folders of a file are called by."""
    found = dict(part.split("=", 1) for part in called.split("/")[:-1])
    texts = {name: found.get(name, NO_VALUE) for name in parted_by(output.settings)}
    return {name: None if text == NO_VALUE else unquote(text) for name, text in texts.items()}


def _values(file: BinaryIO, form: str) -> Iterator[bytes]:
    if form == "csv":
        next(file)  # the names of the columns
    yield from (_records(file) if form == "csv" else (line.rstrip(b"\n") for line in file))


def _records(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the records of lines of CSV: a text in quotes may have ends of lines."""
    held = b""
    for line in lines:
        held += line
        if held.count(b'"') % 2 == 0:
            yield held.removesuffix(b"\n")
            held = b""

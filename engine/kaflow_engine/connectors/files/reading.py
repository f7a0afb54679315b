"""Rows of files that are read back, for checks."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.files.ledger import OWN
from kaflow_engine.connectors.files.rows import NO_VALUE, columns_in_files
from kaflow_engine.connectors.files.types import parted_by
from kaflow_engine.connectors.read_back import of_columns, of_values


def read_rows(output: Output, folder: Path, since: int, most: int) -> pa.Table:
    """Return rows of files with the columns of an output, those of the newest files first.

    Args:
        output: Whose.
        folder: That of the output.
        since: Epoch milliseconds; files that were written before are left out.
        most: Rows.

    Raises:
        OSError: A file cannot be read, or went meanwhile.
        SinkUnfit: A file holds what the pipeline cannot have written.
    """
    found, left = [_rows(output, folder, None)], most
    for path in _files(output, folder, since):
        if left <= 0:
            break
        found.append(_rows(output, folder, path).slice(0, left))
        left -= found[-1].num_rows
    return pa.concat_tables(found)


def _files(output: Output, folder: Path, since: int) -> list[Path]:
    """Return the files of an output that have names, the newest first."""
    seen = [
        (path.stat().st_mtime_ns, path)
        for path in folder.rglob(f"*.{output.settings['format']}")
        if OWN not in path.relative_to(folder).parts
    ]
    return [path for time, path in sorted(seen, reverse=True) if time >= since * 1_000_000]


def _rows(output: Output, folder: Path, path: Path | None) -> pa.Table:
    """Return the rows of a file; None: the columns alone."""
    form, columns = str(output.settings["format"]), columns_in_files(output)
    if path is None or form != "parquet":
        values = [] if path is None else [*_values(path, form)]
        rows = of_values(output, columns, values, "json" if path is None else form)
    else:
        with pq.ParquetFile(path) as file:
            rows = file.read()
    for name, value in _named(output, folder, path).items():
        rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
    return of_columns(output, rows)


def _named(output: Output, folder: Path, path: Path | None) -> dict[str, str | None]:
    """Return the values that the folders of a file are called by."""
    parts = () if path is None else path.relative_to(folder).parts[:-1]
    found = dict(part.split("=", 1) for part in parts)
    texts = {name: found.get(name, NO_VALUE) for name in parted_by(output.settings)}
    return {name: None if text == NO_VALUE else unquote(text) for name, text in texts.items()}


def _values(path: Path, form: str) -> Iterator[bytes]:
    with path.open("rb") as file:
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

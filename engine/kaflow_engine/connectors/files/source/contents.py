"""What is in a file: how many records, and the values of some of them."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from kaflow_engine.connectors.files.source import avro_files
from kaflow_engine.connectors.files.source.seen import Storage
from kaflow_engine.connectors.sources.records import json_values
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import ModelError
from kaflow_engine.flow.origins.files import FileFormat
from kaflow_engine.formats.types import parse_type
from kaflow_engine.model.columns import Column

CHUNK = 16_384
"""Records of one Arrow batch, and from one mark of a file to the next."""
_BOM = b"\xef\xbb\xbf"
BROKEN = (OSError, EOFError, zlib.error, pa.ArrowException, avro_files.NoAvro)
"""What readers raise about what is in a file, and about files that they cannot get."""


def is_away(error: BaseException) -> bool:
    """Tell whether an error of BROKEN is about getting a file, and not about what is in it."""
    by_system = isinstance(error, OSError) and error.errno is not None
    return by_system or "AWS Error" in str(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How the records of a file are written."""

    format: FileFormat
    header: bool = False


@dataclass(frozen=True, slots=True)
class Counted:
    """How many records a file has, and where some of them begin."""

    records: int
    marks: tuple[int, ...] = ()


def count(storage: Storage, path: str, form: Form) -> Counted:
    """Look through a file.

    Raises:
        OSError, EOFError, zlib.error, ArrowException, NoAvro: It cannot be read.
    """
    if form.format == "parquet":
        with storage.open(path) as raw, pq.ParquetFile(raw) as file:
            return Counted(file.metadata.num_rows)
    if form.format == "avro":
        with storage.open(path) as raw:
            return Counted(avro_files.count(raw))
    found, marks = 0, list[int]()
    for at, _ in _lines(storage, path, form, 0):
        if found % CHUNK == 0:
            marks.append(at)
        found += 1
    return Counted(found, () if _is_packed(path) else tuple(marks))


def values(
    storage: Storage, path: str, form: Form, start: int, end: int, marks: Sequence[int] = ()
) -> Iterator[pa.Array]:
    """Yield the values of the records from `start` to `end` of a file, as binary arrays.

    Raises:
        OSError, EOFError, zlib.error, ArrowException, NoAvro: It cannot be read.
    """
    if form.format == "parquet":
        yield from _rows(storage, path, start, end)
        return
    if form.format == "avro":
        with storage.open(path) as raw:
            yield from avro_files.values(raw, start, end, CHUNK)
        return
    at, skipped = (marks[start // CHUNK], start // CHUNK * CHUNK) if marks else (0, 0)
    lines = islice(_lines(storage, path, form, at), start - skipped, end - skipped)
    while some := [line for _, line in islice(lines, CHUNK)]:
        yield pa.array(some, pa.binary())


def columns(storage: Storage, path: str, form: Form) -> tuple[Column, ...] | None:
    """Return the columns of a file that says which it has, with types as DuckDB writes them; None:
    its records show them.

    Raises:
        OSError, ArrowException, NoAvro: It cannot be read.
    """
    if form.format not in ("parquet", "avro"):
        return None
    with storage.open(path) as raw:
        if form.format == "avro":
            return avro_files.columns(raw)
        with pq.ParquetFile(raw) as file:
            return _columns(file.schema_arrow)


def _is_packed(path: str) -> bool:
    return path.endswith(".gz")


def _lines(storage: Storage, path: str, form: Form, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines from a byte on that are not blank, and where each begins."""
    with storage.open(path) as raw:
        file = cast(BinaryIO, gzip.open(raw)) if _is_packed(path) else raw
        file.seek(at)
        header = form.header and at == 0
        for line in file:
            begins, at = at, at + len(line)
            text = line.rstrip(b"\r\n")
            if begins == 0:
                text = text.removeprefix(_BOM)
            if not text.strip():
                continue
            if header:
                header = False
                continue
            yield begins, text


def _rows(storage: Storage, path: str, start: int, end: int) -> Iterator[pa.Array]:
    with storage.open(path) as raw, pq.ParquetFile(raw) as file:
        pairs = _with_sql(_columns(file.schema_arrow))
        first = 0
        for group in range(file.num_row_groups):
            last = first + file.metadata.row_group(group).num_rows
            if start < last and first < end:
                for batch in file.iter_batches(batch_size=CHUNK, row_groups=[group]):
                    low, high = max(start - first, 0), min(end - first, batch.num_rows)
                    if low < high:
                        rows = pa.Table.from_batches([batch]).slice(low, high - low)
                        yield json_values(rows, pairs)
                    first += batch.num_rows
            first = last


def _columns(schema: pa.Schema) -> tuple[Column, ...]:
    described = query("SELECT * FROM (DESCRIBE SELECT * FROM rows)", schema.empty_table())
    return tuple(Column(row["column_name"], row["column_type"]) for row in described.to_pylist())


def _with_sql(found: Sequence[Column]) -> list[tuple[Column, str]]:
    """Return columns as JSON has them, with the SQL of their values."""
    pairs: list[tuple[Column, str]] = []
    for column in found:
        name = identifier(column.name)
        try:
            parse_type(column.type)
            pairs.append((column, name))
        except ModelError:  # JSON has no form for it
            pairs.append((Column(column.name, "VARCHAR"), f"CAST({name} AS VARCHAR)"))
    return pairs

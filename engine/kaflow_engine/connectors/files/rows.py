"""Rows as whole files: one for each delivery partition and folder, written under another name."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kaflow_engine.connectors.contract import Output, Refused
from kaflow_engine.connectors.files.types import parted_by
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.flow.records import EVENT_TIME, SLOT
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column

_TIMES = {"day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H"}
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""As readers of such folders know NULL."""
_ESCAPED = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")
_LONGEST = 250
"""Bytes of the name of a folder; file systems take 255."""
_LONGEST_PATH = 2_000
"""Bytes of the names of all folders around a file; paths may have 4,096."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows that are one file."""

    slot: int
    folder: str
    """Below that of the output; empty: it itself."""
    places: "np.ndarray[tuple[int], np.dtype[np.int64]]"


def columns_in_files(output: Output) -> tuple[Column, ...]:
    """Return the columns that files hold: not those that name their folders."""
    parted = parted_by(output.settings)
    return tuple(column for column in output.columns if column.name not in parted)


def parts_of(output: Output, rows: pa.Table) -> tuple[list[Part], list[Refused]]:
    """Return which rows are one file, in their order, and which can be in no folder.

    Args:
        output: Which one.
        rows: Its columns, with those of `flow.records`.
    """
    names = parted_by(output.settings)
    texts = [f"CAST({identifier(SLOT)} AS VARCHAR)"]
    texts += [f"CAST({identifier(name)} AS VARCHAR)" for name in names]
    if period := output.settings.get("partition"):
        names = (*names, f"_{period}")
        time = f"make_timestamp({identifier(EVENT_TIME)} * 1000)"
        texts.append(f"strftime({time}, {literal(_TIMES[str(period)])})")
    packed = f"CAST(to_json([{', '.join(texts)}]::VARCHAR[]) AS VARCHAR)"
    kinds = query(f"SELECT {packed} AS kind FROM rows", rows)["kind"].combine_chunks()
    found = kinds.dictionary_encode()
    codes = found.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(found.dictionary)))
    parts: list[Part] = []
    refused: list[Refused] = []
    for text, places in zip(found.dictionary.to_pylist(), np.split(order, ends[:-1]), strict=True):
        slot, *values = json.loads(text)
        wrong = next(_wrong_values(names, values), None)
        if wrong is None:
            parts.append(Part(int(slot), "/".join(_folders(names, values)), places))
        else:
            refused += [Refused(int(place), "PartitionValue", wrong) for place in places]
    return parts, sorted(refused, key=lambda one: one.row)


def _wrong_values(names: Sequence[str], values: Sequence[str | None]) -> Iterator[str]:
    for name, value, folder in zip(names, values, _folders(names, values), strict=True):
        if value == "":
            yield f"column '{name}' is empty, and no folder can be called by that"
        elif value == NO_VALUE:
            yield f"column '{name}' is '{NO_VALUE}', which stands for NULL"
        elif len(folder.encode()) > _LONGEST:
            yield f"column '{name}' has too many characters for the name of a folder"
    if len("/".join(_folders(names, values)).encode()) > _LONGEST_PATH:
        yield f"columns {', '.join(names)} have too many characters for the path of a file"


def _folders(names: Sequence[str], values: Sequence[str | None]) -> list[str]:
    return [
        f"{name}={NO_VALUE if value is None else _ESCAPED.sub(_escape, value)}"
        for name, value in zip(names, values, strict=True)
    ]


def _escape(letter: re.Match[str]) -> str:
    return f"%{ord(letter[0]):02X}"


def write_rows(file: BinaryIO, output: Output, rows: pa.Table) -> None:
    """Write the content of a file.

    Args:
        file: Empty.
        output: Says in which format.
        rows: Its columns, and perhaps others.
    """
    columns, form = columns_in_files(output), str(output.settings["format"])
    match form:
        case "parquet":
            kept = rows.select([column.name for column in columns])
            pq.write_table(kept, file, compression="zstd")
        case "json" | "csv":
            file.write(_text(form, columns, rows))
        case _:
            raise AssertionError(form)


def _text(form: str, columns: Sequence[Column], rows: pa.Table) -> bytes:
    """Return the lines of rows; of CSV the names of the columns before them."""
    lines = format_of(form).encoder(columns, None).encode(rows).array.to_pylist()
    if form == "csv":
        lines.insert(0, ",".join(map(_csv_name, columns)).encode())
    return b"".join(line + b"\n" for line in lines)


def _csv_name(column: Column) -> str:
    name = column.name
    return '"' + name.replace('"', '""') + '"' if re.search(r'[",\r\n]', name) else name

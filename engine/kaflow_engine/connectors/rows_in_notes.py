"""Rows that tasks hand to the driver in notes, which are plain data: Arrow streams in letters."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from kaflow_engine.connectors.contract import Output

_NOTE = "rows_handed_over"


def compressed(rows: pa.Table) -> bytes:
    """Return rows as a compressed Arrow stream."""
    buffer = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(buffer, rows.schema, options=options) as stream:
        stream.write_table(rows)
    return buffer.getvalue().to_pybytes()


def note_of_rows(output: Output, rows: pa.Table) -> Mapping[str, Any]:
    """Return the note with which a task hands over rows of an output."""
    return {_NOTE: {output.name: base64.b64encode(compressed(rows)).decode()}}


def rows_of_notes(output: Output, notes: Sequence[Mapping[str, Any]]) -> pa.Table | None:
    """Return the rows that all tasks handed over; None: no task had any note of them."""
    found = [
        pa.ipc.open_stream(base64.b64decode(note[_NOTE][output.name])).read_all()
        for note in notes
        if output.name in note.get(_NOTE, {})
    ]
    return pa.concat_tables(found) if found else None

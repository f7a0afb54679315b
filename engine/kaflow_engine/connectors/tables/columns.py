"""The columns of a table's rows: those that are selected, and a key that may be none of them."""

import numpy as np
import pyarrow as pa

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.slots import Places
from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.flow.records import DELETED, KEY
from kaflow_engine.model.columns import Column

_KEY_TYPE = "VARCHAR"
"""Of a key that is not one of the columns: the text that tells its group."""


def written_columns(output: Output) -> tuple[Column, ...]:
    """Return all columns that are written: those of the rows, and a key that is none of them."""
    own, key = output.columns, output.key
    if key is None or output.key_columns or any(column.name == key for column in own):
        return own
    return (*own, Column(key, _KEY_TYPE))


def key_columns(output: Output) -> tuple[Column, ...]:
    """Return the columns of the key, where rows replace each other."""
    if not output.changes:
        return ()
    known = {column.name: column for column in written_columns(output)}
    return tuple(known[name] for name in output.key_columns or (output.key or "",))


def key_column(output: Output) -> Column | None:
    """Return the column of the key, where rows replace each other, of a kind that has one."""
    return next(iter(key_columns(output)), None)


def with_key(output: Output, rows: pa.Table) -> pa.Table:
    """Return rows with all columns that are written."""
    columns = written_columns(output)
    return rows if columns == output.columns else rows.append_column(columns[-1].name, rows[KEY])


def gone_sql(output: Output, key: Column) -> str:
    """Return SQL for a column of the key of a row that goes: nothing but its text is known."""
    text = identifier(KEY)
    if output.key_columns:
        pointer = "/" + key.name.replace("~", "~0").replace("/", "~1")
        text = f"json_extract_string({text}, {literal(pointer)})"
    return f"CAST({text} AS {key.type})"


def key_sql(output: Output, key: Column) -> str:
    """Return SQL for a column of the key of a row, whether it stays or goes."""
    own = f"CAST({identifier(key.name)} AS {key.type})"
    return f"CASE WHEN {identifier(DELETED)} THEN {gone_sql(output, key)} ELSE {own} END"


def keyed_rows(rows: pa.Table, places: Places, *, each: bool = False) -> Places:
    """Return those places whose rows stay in force, in their order: the last one of each key, or
    each.

    A row whose key is NULL is none of them: it never came, so that it does not go either.
    """
    keys = rows[KEY].combine_chunks()
    known = places[keys.is_valid().to_numpy(zero_copy_only=False)[places]]
    if each:
        return known
    coded = keys.take(pa.array(known, pa.int64())).dictionary_encode()
    last = np.empty(len(coded.dictionary), np.int64)
    last[coded.indices.to_numpy()] = known  # numpy keeps the last write
    return np.sort(last)

"""What becomes of a row whose key a table has: which columns decide, and in which order."""

import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.slots import Places
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import KEY
from kaflow_engine.model.columns import Column

THERE = "t"
"""What a statement calls the table."""


def counts_each(output: Output) -> bool:
    """Tell whether each row of a key decides, and not the last one of a batch alone."""
    return bool(output.settings.get("on_conflict") or output.settings.get("update_where"))


def conflict_sql(output: Output, others: Sequence[Column]) -> str:
    """Return what an INSERT does where the key is there.

    Args:
        output: Which one.
        others: The columns that are no part of the key.
    """
    if output.settings.get("on_conflict") == "nothing" or not others:
        return "NOTHING"
    named = [identifier(column.name) for column in others]
    sets = ", ".join(f"{name} = excluded.{name}" for name in named)
    said = output.settings.get("update_where")
    if not said:
        return f"UPDATE SET {sets}"
    compared: dict[str, str] = json.loads(str(said))
    passes = " AND ".join(
        f"excluded.{name} {sign} {THERE}.{name}"
        for name, sign in ((identifier(each), sign) for each, sign in compared.items())
    )
    return f"UPDATE SET {sets} WHERE {passes}"


def rounds_of(rows: pa.Table, places: Places) -> Iterator[Places]:
    """Yield places so that a key comes once in each, and its rows in their order."""
    keys = rows[KEY].combine_chunks().take(pa.array(places, pa.int64()))
    coded = keys.dictionary_encode().indices.to_numpy()
    order = np.argsort(coded, kind="stable")
    first = np.flatnonzero(np.diff(coded[order], prepend=-1))
    counts = np.diff(first, append=len(order))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order)) - np.repeat(first, counts)
    for each in range(int(number.max(initial=-1)) + 1):
        yield places[number == each]

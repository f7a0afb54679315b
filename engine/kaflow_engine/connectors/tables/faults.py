"""Values that a kind of sink would not keep as they are: found before rows leave."""

from collections.abc import Callable, Sequence
from typing import assert_never

import numpy as np
import pyarrow as pa

from kaflow_engine.connectors.contract import Output, Refused
from kaflow_engine.connectors.slots import Places
from kaflow_engine.connectors.tables.columns import key_columns, keyed_rows
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.flow.records import DELETED
from kaflow_engine.formats.types import Decimal, List, Map, Scalar, Struct, Type

Fault = Callable[[str, Type], str | None]
"""Takes SQL of a value and its type; returns SQL for whether it is not kept, of itself."""


def sound_rows(
    output: Output,
    rows: pa.Table,
    faults: Sequence[tuple[str, str]] = (),
    *,
    each: bool = False,
) -> tuple[Places, list[Refused]]:
    """Return the places of the rows to write, and those that no table can keep.

    Args:
        output: Which one; where its rows replace each other, the last one of a key is written.
        rows: All columns that are written, with those of `flow.records`.
        faults: SQL for whether a row has one, and what is said then; rows that go have none.
        each: All rows of a key are written.
    """
    keys = key_columns(output)
    what = "the key" if len(keys) == 1 else "part of the key"
    nulls = [
        (f"{identifier(key.name)} IS NULL", f"column '{key.name}' is {what}, and NULL")
        for key in keys
    ]
    faults = [*nulls, *faults]
    refused = [Refused(place, "ValueNotKept", why) for place, why in _faulty(rows, faults)]
    good = np.ones(rows.num_rows, np.bool_)
    good[[one.row for one in refused]] = False
    places = np.flatnonzero(good)
    return places if not keys else keyed_rows(rows, places, each=each), refused


def _faulty(rows: pa.Table, faults: Sequence[tuple[str, str]]) -> list[tuple[int, str]]:
    if not faults:
        return []
    said = " ".join(f"WHEN {sql} THEN {literal(why)}" for sql, why in faults)
    asked = (
        f"SELECT row_number() OVER () - 1 AS place, {identifier(DELETED)} AS gone, "
        f"CASE {said} END AS why FROM rows"
    )
    found = query(f"SELECT place, why FROM ({asked}) WHERE why IS NOT NULL AND NOT gone", rows)
    return [(row["place"], row["why"]) for row in found.to_pylist()]


def anywhere(fault: Fault, sql: str, kind: Type, depth: int = 0) -> str | None:
    """Return SQL for whether a value has a fault, or one inside of it; None: none can have one."""
    parts: list[str | None] = [fault(sql, kind)]
    match kind:
        case Scalar() | Decimal():
            pass
        case List(element=element):
            parts.append(_any(fault, sql, element, depth))
        case Map(key=key, value=value):
            parts.append(_any(fault, f"map_keys({sql})", key, depth))
            parts.append(_any(fault, f"map_values({sql})", value, depth))
        case Struct(fields=fields):
            for name, field in fields:
                inside = f"struct_extract({sql}, {literal(name)})"
                parts.append(anywhere(fault, inside, field, depth))
        case _:
            assert_never(kind)
    found = [f"coalesce({part}, false)" for part in parts if part]
    return f"({' OR '.join(found)})" if found else None


def _any(fault: Fault, sql: str, element: Type, depth: int) -> str | None:
    each = f"x{depth}"
    inside = anywhere(fault, each, element, depth + 1)
    return f"len(list_filter({sql}, lambda {each}: {inside})) > 0" if inside else None

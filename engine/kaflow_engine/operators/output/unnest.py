"""Lists that become rows: each with its place in the list, which decides about their order."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.operators import Unnest
from kaflow_engine.operators.rows.row_order import with_members
from kaflow_engine.operators.rows.schemas import MEMBERS

PLACES = "$places"
"""A list with the place in each unnested list, from 1."""
_SERIES = identifier("$series")


def unnested(unnests: Sequence[Unnest], rows: str) -> str:
    """Return SQL of rows for each element, with `$places`.

    Args:
        unnests: What is unnested, one after the other.
        rows: SELECT of the rows before.
    """
    for number, unnest in enumerate(unnests):
        lists = [identifier(f"$list{i}") for i in range(len(unnest.lists))]
        longest = f"greatest({', '.join(f'len({name})' for name in lists)})"
        elements = [identifier(element) for element, _ in unnest.lists]
        made = {**dict(zip(lists, elements, strict=True)), _SERIES: _place(number)}
        held = ", ".join(
            f"{sql} AS {name}" for name, (_, sql) in zip(lists, unnest.lists, strict=True)
        )
        where = f" WHERE {unnest.where}" if unnest.where else ""
        chosen = ", ".join(f"unnest({of}) AS {element}" for of, element in made.items())
        rows = (
            f"SELECT * EXCLUDE ({', '.join(made)}), {chosen} "
            f"FROM (SELECT *, generate_series(1, {longest}) AS {_SERIES} "
            f"FROM (SELECT *, {held} FROM ({rows}){where}))"
        )
    series = [_place(number) for number in range(len(unnests))]
    named = ", ".join(
        f"{place} AS {identifier(unnest.place)}"
        for place, unnest in zip(series, unnests, strict=True)
    )
    return f"SELECT *, [{', '.join(series)}] AS {identifier(PLACES)}, {named} FROM ({rows})"


def _place(number: int) -> str:
    return identifier(f"$place{number}")


def first_of_each(rows: pa.Table) -> pa.Table:
    """Return the first row of each `rn`."""
    _, places = np.unique(rows["rn"].to_numpy(), return_index=True)
    return rows.take(pa.array(np.sort(places)))


def ordered_by_place(rows: pa.Table) -> pa.Table:
    """Put the places behind the members of rows, by which rows of one record are ordered."""
    if "members" not in rows.column_names:
        return rows.append_column(pa.field("members", MEMBERS), rows[PLACES].cast(MEMBERS))
    return with_members(rows, rows[PLACES])

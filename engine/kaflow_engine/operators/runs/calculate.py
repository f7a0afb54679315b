"""The SQL of runs over their rows; rows that fail alone are taken out."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from kaflow_engine.duck.queries import repeated
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.timed import AT, NUMBER, Runs
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.row_errors.quarantine import DATA_ERRORS, error_class, error_text
from kaflow_engine.operators.rows.row_text import columns_of, pack, to_text, unpack

Select = Callable[[pa.Table], pa.Table]

_MOST = 100_000
"""Rows of runs that are asked together, unless one run alone has more."""
_NONE = pa.nulls(0, pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What became of a run."""

    rows: pa.Array
    """What the SQL selects, packed, in its order; text."""
    bad: Sequence[tuple[int, str, str]] = ()
    """Rows that were taken out: their place in the run, the class of the error, and its text."""
    failed: tuple[str, str] | None = None
    """Class and text of the error where the SQL fails on the rows together."""


def made_of(runs: Runs, found: Sequence[pa.Array]) -> list[Made]:
    """Run the SQL over each run; where it fails, again without the rows that fail alone.

    Args:
        runs: What runs.
        found: The rows of each run, packed, in their order.
    """
    sql = runs.together
    text = _sql(sql or runs.sql, runs.columns, runs.results, many=sql is not None)
    with repeated(text) as select:
        if sql is None:
            return [_made(select, rows) for rows in found]
        return [made for some in _parts(found) for made in _made_together(select, some)]


def _parts(found: Sequence[pa.Array]) -> Iterator[Sequence[pa.Array]]:
    """Yield runs one behind the other that are asked together."""
    begin, rows = 0, 0
    for place, run in enumerate(found):
        if rows and rows + len(run) > _MOST:
            yield found[begin:place]
            begin, rows = place, 0
        rows += len(run)
    yield found[begin:]


def _made_together(select: Select, found: Sequence[pa.Array]) -> list[Made]:
    """Run the SQL over several runs at once; where it fails, over each of them."""
    sizes = [len(rows) for rows in found]
    try:
        made = select(_given(pa.concat_arrays(found), np.repeat(np.arange(len(found)), sizes)))
    except DATA_ERRORS:
        return [_made(select, rows) for rows in found]
    rows = made["made"].combine_chunks()
    stops = np.cumsum(np.bincount(made[NUMBER].to_numpy(), minlength=len(found))).tolist()
    return [
        Made(rows=rows.slice(start, stop - start))
        for start, stop in zip([0, *stops], stops, strict=False)
    ]


def _made(select: Select, rows: pa.Array) -> Made:
    try:
        return Made(rows=_selected(select, rows))
    except DATA_ERRORS as error:
        first = error_class(error), error_text(error)
    bad: list[tuple[int, str, str]] = []
    for place in range(len(rows)):
        try:
            _selected(select, rows.slice(place, 1))
        except DATA_ERRORS as error:
            bad.append((place, error_class(error), error_text(error)))
    out = {place for place, _, _ in bad}
    left = rows.take(pa.array([n for n in range(len(rows)) if n not in out], pa.int64()))
    if not bad or not len(left):
        return Made(rows=_NONE, bad=bad, failed=None if bad else first)
    try:
        return Made(rows=_selected(select, left), bad=bad)
    except DATA_ERRORS as error:
        return Made(rows=_NONE, bad=bad, failed=(error_class(error), error_text(error)))


def _selected(select: Select, rows: pa.Array) -> pa.Array:
    return select(_given(rows, np.zeros(len(rows), np.int64)))["made"].combine_chunks()


def _given(rows: pa.Array, numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    places = np.arange(len(rows))
    return pa.table({"payload": rows, NUMBER: pa.array(numbers), AT: pa.array(places)})


@lru_cache(maxsize=64)
def _sql(sql: str, columns: Sequence[Column], results: Sequence[Column], *, many: bool) -> str:
    """Return the whole statement over `rows` (payload, NUMBER, AT); what the author wrote stands in
    it as it is, and nothing around it changes the order of its rows."""
    beside = [identifier(name) for name in (NUMBER, AT)] if many else []
    read = ", ".join([*columns_of("l", columns), *beside])
    batch = f"batch AS (SELECT {read} FROM (SELECT *, {unpack('payload')} AS l FROM rows))"
    texts = pack(to_text(identifier(column.name), column.type) for column in results)
    made = ", ".join([f"{texts} AS made", *beside[:1]])
    return f"SELECT * FROM (WITH {batch} SELECT {made} FROM ({sql}\n))"

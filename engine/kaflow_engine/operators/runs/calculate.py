"""The SQL of runs over their rows; rows that fail alone are taken out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from kaflow_engine.duck.queries import repeated
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.timed import Runs
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.row_errors.quarantine import DATA_ERRORS, error_class, error_text
from kaflow_engine.operators.rows.row_text import columns_of, pack, to_text, unpack

Select = Callable[[pa.Table], pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What became of a run."""

    rows: Sequence[str]
    """What the SQL selects, packed, in its order."""
    bad: Sequence[tuple[int, str, str]] = ()
    """Rows that were taken out: their place in the run, the class of the error, and its text."""
    failed: tuple[str, str] | None = None
    """Class and text of the error where the SQL fails on the rows together."""


def made_of(runs: Runs, found: Iterable[pa.Array]) -> list[Made]:
    """Run the SQL over each run; where it fails, again without the rows that fail alone.

    Args:
        runs: What runs.
        found: The rows of each run, packed, in their order.
    """
    with repeated(_sql(runs.sql, runs.columns, runs.results)) as select:
        return [_made(select, rows) for rows in found]


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
        return Made(rows=(), bad=bad, failed=None if bad else first)
    try:
        return Made(rows=_selected(select, left), bad=bad)
    except DATA_ERRORS as error:
        return Made(rows=(), bad=bad, failed=(error_class(error), error_text(error)))


def _selected(select: Select, rows: pa.Array) -> list[str]:
    found: list[str] = select(pa.table({"payload": rows}))["made"].to_pylist()
    return found


@lru_cache(maxsize=64)
def _sql(sql: str, columns: Sequence[Column], results: Sequence[Column]) -> str:
    """Return the whole statement over `rows` (payload); what the author wrote stands in it as it
    is, and nothing around it changes the order of its rows."""
    read = ", ".join(columns_of("l", columns))
    batch = f"batch AS (SELECT {read} FROM (SELECT {unpack('payload')} AS l FROM rows))"
    texts = pack(to_text(identifier(column.name), column.type) for column in results)
    return f"SELECT * FROM (WITH {batch} SELECT {texts} AS made FROM ({sql}\n))"

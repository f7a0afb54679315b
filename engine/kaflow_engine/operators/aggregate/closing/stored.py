"""The results of groups that are over, computed from their accumulators as they are stored."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.aggregate.calculate import keeps_rows, result_columns, times_of
from kaflow_engine.operators.aggregate.closing.over import OverGroups
from kaflow_engine.operators.aggregate.workspace import Work
from kaflow_engine.operators.handover import Leaving, placed
from kaflow_engine.operators.rows.layout import batch_time_column
from kaflow_engine.operators.rows.row_text import columns_of, from_text, pack, to_text, unpack


def rows_at_once(work: Work, over: OverGroups, columns: pa.StringArray) -> pa.Table:
    """Compute the results of groups in one statement.

    Args:
        work: The aggregate.
        over: The groups.
        columns: Their accumulators, as packed rows.

    Returns:
        `rn` and `row`, the columns of the result as a packed row.

    Raises:
        DATA_ERRORS: Some of them fail.
    """
    assert not keeps_rows(work.aggregate)
    source, made = _results(work.aggregate)
    row = pack(text for _, text in made.values())
    return query(f'SELECT rn, {row} AS "row" FROM ({source})', rows=_groups(over, columns))


def final_rows(work: Work, over: OverGroups, columns: pa.StringArray, known: pa.Table) -> Leaving:
    """Return the rows that groups send when they are over, computed where they are read.

    Args:
        work: The aggregate.
        over: The groups.
        columns: Their accumulators, as packed rows.
        known: Where they come from, by `rn`.
    """
    source, made = _results(work.aggregate)
    values = ", ".join(f"{value} AS {identifier(name)}" for name, (value, _) in made.items())
    time = batch_time_column(work.batch.batch_time)

    def packed(wanted: Sequence[Column]) -> str:
        return f"SELECT rn, {pack(made[c.name][1] for c in wanted)} AS payload FROM ({source})"

    return Leaving(
        rows=_groups(over, columns),
        typed=f"SELECT rn, {time}, {values} FROM ({source})",
        packed=packed,
        placed=lambda found: placed(found, known),
    )


def _groups(over: OverGroups, columns: pa.StringArray) -> pa.Table:
    return pa.table(
        {
            "rn": pa.array(np.arange(len(over.keys))),
            "keys": pc.binary_slice(over.keys, 1, 1 << 31).cast(pa.string()),
            "began": over.starts,
            "ended": over.ends,
            "ts": over.ts,
            "columns": columns,
        }
    )


@lru_cache(maxsize=256)
def _results(aggregate: Aggregate) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return how the results of groups are computed as they are kept, without rows.

    Returns:
        A SELECT from what `_groups` gives; and of each column of the result SQL over it, for the
        value and for its text.
    """
    chosen = ["rn", "k", "began", "ended", "ts"]
    chosen += columns_of("l", [a.column for a in aggregate.accumulators])
    lists = f"{unpack('keys')} AS k, {unpack('columns')} AS l"
    groups = f"SELECT {', '.join(chosen)} FROM (SELECT rn, began, ended, ts, {lists} FROM rows)"
    made = [
        (from_text(f"k[{i}]", column.type), f"k[{i}]") for i, column in enumerate(aggregate.keys, 1)
    ]
    for result in aggregate.results:
        value = f"CAST(({result.sql}) AS {result.column.type})"
        made.append((value, to_text(value, result.column.type)))
    for at in times_of(aggregate):
        value = f"make_timestamp({at} * 1000)"
        made.append((value, to_text(value, "TIMESTAMP")))
    names = [column.name for column in result_columns(aggregate)]
    return groups, dict(zip(names, made, strict=True))

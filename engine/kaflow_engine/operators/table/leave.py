"""Changes of tables on their way out, and dead letters about rows on which a reader fails."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.chains.chain import chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.formats.pick import keep
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.handover import Changes, HandChanges, placed
from kaflow_engine.operators.output.row_letters import change_letters
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.row_order import Places
from kaflow_engine.operators.rows.schemas import ORIGIN, TRIGGER

_PLACE = (*TRIGGER, *ORIGIN, "members")
_COLUMNS = ("kept", "group", "old", "new", "ts", *_PLACE)


def made_by(changes: pa.Table, rows: pa.Table) -> pa.Table:
    """Put beside changes, which name a row each in `by`, where that row comes from."""
    places = rows.select(_PLACE).take(changes["by"])
    for name in _PLACE:
        changes = changes.append_column(name, places[name])
    return changes.drop_columns(["by"])


def send_changes(
    flow: Flow,
    table: Materialize | TableJoin,
    columns: Sequence[Column],
    found: Sequence[pa.Table],
    hand_changes: HandChanges,
    called: Callable[[bytes], str],
) -> list[pa.Table]:
    """Hand on changes: each, or what they come to for each key.

    Args:
        flow: What runs.
        table: Whose changes they are.
        columns: Of its rows.
        found: `kept`, the key under which the row is kept, behind its shard byte; `group`, `old`,
            `new`, `ts`, and where they come from; in their order.
        hand_changes: Takes them.
        called: Returns what people call the row of a `group`.

    Returns:
        Rows and dead letters, schema EXCHANGE.
    """
    some = [one.select(_COLUMNS) for one in found if one.num_rows]
    if not some:
        return []
    every = pa.concat_tables(some)
    if not table.each:
        every = _net(every)
    if not every.num_rows:
        return []
    count = every.num_rows
    numbers = pa.array(np.arange(count))
    places = {name: every[name] for name in (*_PLACE, "ts")}
    part = pa.array(first_parts(every["kept"].combine_chunks(), flow.partitions))
    no = pa.repeat(False, count)
    known = pa.table({"rn": numbers, **places, "part": part, "counted": no, "forced": no})
    changes = Changes(
        rows=pa.table({"rn": numbers, **{n: every[n] for n in ("group", "old", "new")}}),
        columns=columns,
        placed=lambda rows: placed(rows, known),
        stays=False,
    )
    taken = hand_changes(changes)
    if not taken.bad:
        return [taken.rows]
    letters = change_letters(flow, chain_of(flow, table), changes, taken.bad, called)
    return [taken.rows, letters]


def _net(changes: pa.Table) -> pa.Table:
    """Return one change for each row and place where it is kept, or none where it is as before."""
    first, last = _first_and_last(changes)
    old = changes["old"].take(pa.array(first))
    found = changes.take(pa.array(last)).set_column(
        changes.schema.get_field_index("old"), "old", old
    )
    there = pc.or_(pc.is_valid(found["old"]), pc.is_valid(found["new"]))
    differs = pc.fill_null(pc.not_equal(found["old"], found["new"]), True)
    return keep(found, pc.and_(there, differs))


def _first_and_last(changes: pa.Table) -> tuple[Places, Places]:
    """Return the places of the first and of the last change of each row, in the order of these."""
    kept, group = (
        changes[name].combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
        for name in ("kept", "group")
    )
    rows = kept * (int(group.max()) + 1) + group
    _, first = np.unique(rows, return_index=True)
    _, behind = np.unique(rows[::-1], return_index=True)
    last = len(rows) - 1 - behind
    order = np.argsort(last)
    return first[order], last[order]

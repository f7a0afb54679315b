"""Changes of a table as append rows: what a reader makes of the row before, or after, is a row."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.operators import Project
from kaflow_engine.flow.tables import APPEND_OP, APPEND_TIME, Append
from kaflow_engine.formats.pick import keep
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.handover import Changes, HandOn, Leaving, Taken
from kaflow_engine.operators.outcomes.outcomes import EMITTED
from kaflow_engine.operators.output.before_after import Moves, before_after
from kaflow_engine.operators.output.project import projected
from kaflow_engine.operators.output.unnest import PLACES
from kaflow_engine.operators.row_errors.quarantine import bad_records, guarded
from kaflow_engine.operators.rows.layout import selected
from kaflow_engine.operators.rows.row_order import with_members
from kaflow_engine.operators.rows.row_text import columns_of, pack, to_text, unpack
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.state.binary_columns import ordered_words

_CHANGE = "$change"


def enter_append(project: Project, append: Append, changes: Changes, hand_on: HandOn) -> Taken:
    """Take changes: each makes one row, or none where what is selected stays as it is.

    A row on which the SQL fails is no row. What fails behind fails the change.

    Args:
        project: What is selected of the rows of the table.
        append: What makes append rows of it.
        changes: Of the table.
        hand_on: Takes the append rows, which have numbers of their own.
    """
    sides = before_after(changes)
    texts = pack(to_text(selected(column), column.type) for column, _ in project.columns)
    places = f", {identifier(PLACES)}" if project.unnests else ""
    sql = f"SELECT rn{places}, {texts} AS row FROM ({projected(project, sides.typed)})"
    found, failed = guarded(sql, sides.rows)
    parted = sides
    if project.unnests:
        parted, found = sides.unnested(found, len(project.unnests))
    rows = _rows(append, parted.moves(found), parted.changes)
    bad = tuple(sides.bad_of(bad_records(failed)))
    if not rows.num_rows:
        return Taken(
            rows=EXCHANGE.empty_table(),
            numbers=pa.chunked_array([], pa.int64()),
            passed=changes.placed(pa.table({"rn": rows[_CHANGE]})),
            bit=EMITTED,
            bad=bad,
        )
    taken = hand_on(_leaving(append, changes, rows))
    of = rows[_CHANGE].combine_chunks()
    behind = (replace(one, row=of[one.row].as_py()) for one in taken.bad)
    passed = taken.passed.select(["rn"])["rn"]
    return replace(
        taken,
        numbers=pa.chunked_array([of.take(taken.numbers.combine_chunks())], pa.int64()),
        passed=changes.placed(pa.table({"rn": of.take(passed.combine_chunks()).unique()})),
        bad=(*bad, *behind),
    )


def _rows(append: Append, moves: Moves, changes: Changes) -> pa.Table:
    """Return `rn`, from 0, `$change`, the `rn` of the change, the `group` of the row, what is
    selected as packed `row`, and `op`: an update is the row that comes."""
    goes = pc.invert(moves.comes)
    wanted = pc.invert(pc.and_(goes, moves.replaced))
    if not append.deletes:
        wanted = moves.comes
    op = pc.if_else(goes, "d", pc.if_else(moves.replaced, "u", "i"))
    made = pa.table(
        {
            _CHANGE: moves.numbers,
            "group": changes.rows["group"].take(moves.changes),
            "row": moves.rows["row"],
            "op": op,
        }
    )
    kept = keep(made, wanted)
    return kept.append_column("rn", pa.array(np.arange(kept.num_rows)))


def _leaving(append: Append, changes: Changes, rows: pa.Table) -> Leaving:
    time = changes.placed(pa.table({"rn": rows[_CHANGE]}))["ts"]
    op, at = (identifier(f"{append.alias}.{name}") for name in (APPEND_OP, APPEND_TIME))
    columns = [Column(f"{append.alias}.{c.name}", c.type) for c in append.columns]
    values = ", ".join(
        ["rn", *columns_of("l", columns), f"op AS {op}", f"make_timestamp(ts * 1000) AS {at}"]
    )
    typed = f"SELECT {values} FROM (SELECT rn, op, ts, {unpack('row')} AS l FROM rows)"

    def packed(wanted: Sequence[Column]) -> str:
        texts = pack(to_text(identifier(column.name), column.type) for column in wanted)
        return f"SELECT rn, {texts} AS payload FROM ({typed})"

    return Leaving(
        rows=rows.append_column("ts", time),
        typed=typed,
        packed=packed,
        placed=lambda found: _placed(found, rows, changes),
    )


def _placed(found: pa.Table, rows: pa.Table, changes: Changes) -> pa.Table:
    """Put beside rows where their changes come from; those that one record makes have an order, in
    whatever tasks they are: by the rows of the table."""
    own = rows.take(found["rn"].combine_chunks())
    at = found.column_names.index("rn")
    made = changes.placed(found.set_column(at, "rn", own[_CHANGE]))
    made = made.set_column(at, "rn", found["rn"])
    return with_members(made, ordered_words(own["group"].combine_chunks()))

"""Changes of tables as records that say in a header what they do."""

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import literal
from kaflow_engine.flow.sinks import OPERATIONS
from kaflow_engine.formats.headers import entry_text, with_entry_sql
from kaflow_engine.operators.output.before_after import Moves


def with_operations(header: str, moves: Moves) -> pa.Table:
    """Return what leaves a reader, deletes as the rows that go, each with its operation.

    Args:
        header: What the header is called.
        moves: The rows.
    """
    # a row that goes and one that comes for it have other keys: the latter is new under its own
    alone = pc.is_in(moves.changes, moves.changes.filter(pc.invert(moves.comes)))
    replaces = pc.and_(moves.replaced, pc.invert(alone))
    entries = {op: entry_text(header, said) for op, said in OPERATIONS.items()}
    come = pc.if_else(replaces, entries["u"], entries["i"])
    rows = pa.table(
        {
            "rn": moves.numbers,
            "out_key": moves.rows["out_key"],
            "value": moves.rows["value"],
            "headers": moves.rows["headers"],
            "entry": pc.if_else(moves.comes, come, entries["d"]),
            "place": pa.array(range(len(moves.numbers)), pa.int64()),
        }
    )
    sql = with_entry_sql("entry", "headers")
    return query(f"SELECT rn, out_key, value, {sql} AS headers FROM rows ORDER BY place", rows=rows)


def as_begun(header: str, mine: pa.ChunkedArray, rows: pa.Table) -> pa.Table:
    """Return rows of a sink to which nothing was sent: what it is given is created there, and what
    goes has no value, so that it is left out.

    Args:
        header: What the header is called.
        mine: Which rows are for the sink.
        rows: With `value`, and the headers as `payload`.
    """
    create, update, delete = (f"[{entry_text(header, OPERATIONS[op])}" for op in "iud")
    found = query(
        f"SELECT CASE WHEN mine AND starts_with(headers, {literal(update)}) "
        f"THEN {literal(create)} || substr(headers, {len(update) + 1}) ELSE headers END AS headers,"
        f" coalesce(mine AND starts_with(headers, {literal(delete)}), FALSE) AS goes "
        "FROM rows ORDER BY place",
        rows=pa.table(
            {"mine": mine, "headers": rows["payload"], "place": pa.array(range(rows.num_rows))}
        ),
    )
    columns = {
        "payload": found["headers"],
        "value": pc.if_else(found["goes"], pa.scalar(None, pa.binary()), rows["value"]),
    }
    for name, column in columns.items():
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), column)
    return rows

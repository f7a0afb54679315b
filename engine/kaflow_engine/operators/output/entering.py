"""What a projection selects for an operator that gathers rows: a key, and packed columns."""

from collections.abc import Sequence

from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.operators import Project
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.output.project import projected
from kaflow_engine.operators.output.unnest import PLACES
from kaflow_engine.operators.row_errors.dead_letters import RAW
from kaflow_engine.operators.rows.layout import canonical, keyed, placed_by, selected
from kaflow_engine.operators.rows.row_text import pack, to_text


def entering(
    project: Project,
    keys: Sequence[Column],
    arguments: Sequence[Column],
    typed: str,
    shard: str | None = None,
) -> str:
    """Return a SELECT of `rn`, the key behind its shard byte, and the arguments as packed row.

    Args:
        project: The entry.
        keys: Columns of it that are the key.
        arguments: Columns of it that go into the operator.
        typed: SELECT of `rn` and the columns of the rows before.
        shard: SQL over the keys of the text that has the shard; None: that of all keys.
    """
    parts = [canonical(selected(column), column.type) for column in keys]
    texts = [to_text(selected(column), column.type) for column in arguments]
    places = f', "{PLACES}"' if project.unnests else ""
    edge = project.rows
    source = projected(project, typed)
    raw, joined = "", ""
    if isinstance(edge, Driving) and edge.raw is not None:  # a join has it beside its rows
        raw = ", r.raw"
        original = f"CASE WHEN {edge.raw} THEN {RAW} END"
        joined = f" JOIN (SELECT rn, {original} AS raw FROM ({typed})) r ON r.rn = p.rn"
    own, place = "", keyed("p.k")
    if shard is not None:
        own, place = f", {shard} AS shard", placed_by("p.shard", "p.k")
    made = f"SELECT rn{places}, {pack(parts)} AS k{own}, {pack(texts)} AS payload FROM ({source})"
    return f"SELECT p.rn{places}, {place} AS key, p.payload{raw} FROM ({made}) p{joined}"

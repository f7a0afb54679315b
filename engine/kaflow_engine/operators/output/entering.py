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
    source, places, raw = _source(project, typed)
    own, place = "", keyed("p.k")
    if shard is not None:
        own, place = f", {shard} AS shard", placed_by("p.shard", "p.k")
    made = f"SELECT rn{places}{raw}, {pack(parts)} AS k{own}, {pack(texts)} AS payload"
    return f"SELECT p.rn{places}, {place} AS key, p.payload{raw} FROM ({made} FROM ({source})) p"


def gathering(project: Project, typed: str, *, raw: bool) -> str:
    """Return a SELECT of `rn` and all columns of a projection as packed row, without a key.

    Args:
        project: The entry.
        typed: SELECT of `rn` and the columns of the rows before.
        raw: The original bytes of records are wanted.
    """
    texts = [to_text(selected(column), column.type) for column, _ in project.columns]
    source, places, original = _source(project, typed)
    return f"SELECT rn{places}, {pack(texts)} AS payload{original if raw else ''} FROM ({source})"


def _source(project: Project, typed: str) -> tuple[str, str, str]:
    """Return a SELECT of what is projected, and of it the columns with places and with the original
    bytes, each behind a comma, where there are some."""
    places = f', "{PLACES}"' if project.unnests else ""
    edge = project.rows
    if not isinstance(edge, Driving) or edge.raw is None:  # a join has it beside its rows
        return projected(project, typed), places, ""
    return projected(project, typed, f"CASE WHEN {edge.raw} THEN {RAW} END AS raw"), places, ", raw"

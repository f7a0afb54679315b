"""What events look up: the one row that has the key of a table, or all rows with some columns."""

from collections.abc import Sequence

from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.scope import Relation, element
from kaflow_engine.sql.shape import KeyPair
from kaflow_engine.sql.syntax import DIALECT
from kaflow_engine.sql.tables.groups import one_group


def as_looked_up(
    side: Flat, relation: Relation, keys: Sequence[KeyPair], *, by_events: bool
) -> tuple[Flat, bool]:
    """Return what is joined, and whether events look up all rows of it with the key of the join.

    A table whose rows are not found by its key is kept by a query of its own: what a row was says
    under which key it was found before. So are rows of which a topic has the changes.

    Args:
        side: A topic, or groups.
        relation: What that is in the query.
        keys: The condition.
        by_events: Events are what it is joined to.
    """
    alias = relation.base
    if not by_events:
        return side, False
    if side.once:
        return side, False
    if side.queries:
        return side, not one_group(side, keys)
    if not side.is_table:
        return side, False
    by_key = _is_key(side.tables[alias], alias, keys)
    if by_key and alias not in side.changes:
        return side, False
    below = Flat(
        sources=side.sources,
        readings=side.readings,
        changes=side.changes,
        tables=side.tables,
        filters={alias: [*side.filters.get(alias, []), *side.where]},
    )
    found = Flat(
        sources=[(alias, "")],
        queries={alias: below.shape()},
        called={alias: relation.alias},
        aliases=side.aliases,
    )
    return found, not by_key


def _is_key(key: Sequence[str], alias: str, keys: Sequence[KeyPair]) -> bool:
    own = [element(alias, name).sql(dialect=DIALECT).lower() for name in key]
    return len(own) == 1 and [pair.inner.sql.lower() for pair in keys] == own

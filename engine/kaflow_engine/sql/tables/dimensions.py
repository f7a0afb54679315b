"""Dimensions that are joined to tables: they are tables, too, by the columns of the join."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.joins import read_conditions, split_condition
from kaflow_engine.sql.scope import Relation, Scope
from kaflow_engine.sql.shape import Expr
from kaflow_engine.sql.tables.asked import asked_by
from kaflow_engine.sql.tables.groups import changes, looked_up
from kaflow_engine.sql.tables.joined import present


def become_tables(
    join: exp.Join, side: Flat, relation: Relation, scope: Scope, flat: Flat, at: Location | None
) -> None:
    """Make a dimension a table that is joined to one, or to which one is joined.

    Args:
        join: As it was written.
        side: What is joined.
        relation: What that is in the query.
        scope: What is read so far.
        flat: The same rows.
        at: Where the join stands.

    Raises:
        ModelError: The condition is wrong, or says no columns of the dimension; or a dimension asks
            a dynamic table.
    """
    first = flat.is_dimension and (side.is_table or changes(side))
    if not first and not (side.is_dimension and flat.is_table):
        return
    asked = asked_by(join)
    if asked is not None:
        raise SqlError(
            f"dynamic_table_check('{asked.name}', …) is asked by rows of dimension "
            f"'{scope.relations[0].alias}'",
            at,
            f"declare topics: {flat.sources[0][1]}: table: true, and take it out of "
            "state.dimensions; or read its records as events, by taking it out alone",
        )
    trial = replace(scope, relations=[*scope.relations], merged=dict(scope.merged))
    _, joined = looked_up(side, relation)
    conditions = read_conditions(join, joined, trial, flat, [])
    if conditions is None:
        return  # what is wrong with them is noted where they are read for good
    keys = split_condition(conditions, joined.base, flat, at)
    dimension, own = (flat, scope.relations[0]) if first else (side, relation)
    exprs = [pair.outer if first else pair.inner for pair in keys]
    dimension.tables[own.base] = _columns(exprs, own, at)
    own.present = present(dimension)


def _columns(exprs: Sequence[Expr], own: Relation, at: Location | None) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for expr in exprs:
        name = next(iter(expr.uses))[1]
        if expr.sql != identifier(f"{own.base}.{name}"):
            raise SqlError(
                f"dimension '{own.alias}' is joined to tables by an expression, and is a table by "
                "the columns of the join",
                at,
                f"compare a column of '{own.alias}'; or declare topics: {own.topics[0]}: table: "
                "true, and take it out of state.dimensions",
            )
        found[name] = None
    return tuple(found)

"""Joins of tables: of which kind, by which key, and what of a row may be missing."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.windows import ROW_TIME
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.scope import Relation, Scope, element
from kaflow_engine.sql.shape import HERE, JoinKind, JoinShape
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import DIALECT, at_line

_KINDS: dict[str, JoinKind] = {"LEFT": "LEFT", "RIGHT": "RIGHT", "FULL": "FULL"}


def said_kind(join: exp.Join) -> JoinKind:
    """Return the kind of a join as it is written."""
    return _KINDS.get((join.side or "").upper(), "INNER")


def as_called(key: Sequence[str], columns: Sequence[Column] | None) -> tuple[str, ...]:
    """Return the columns of a key by the names that the columns of the topic have."""
    names = {column.name.lower(): column.name for column in columns or ()}
    return tuple(names.get(name.lower(), name) for name in key)


def present(flat: Flat) -> exp.Expr | None:
    """Return what is true of a row of a join in which rows of these sources are."""
    if not flat.is_table:
        return None
    kept = flat.sources if any(join.kind in ("RIGHT", "FULL") for join in flat.joins) else None
    aliases = [alias for alias, _ in kept or flat.sources[:1]]
    names = [HERE if alias in flat.queries else flat.tables[alias][0] for alias in aliases]
    parts = [
        element(alias, name).is_(exp.null()).not_(copy=False)
        for alias, name in zip(aliases, names, strict=True)
    ]
    return exp.or_(*parts, dialect=DIALECT, copy=False)


def _optional(relation: Relation) -> None:
    """Let columns of a table be NULL in rows of a join that lack it, whatever they are made of."""
    if relation.present is not None:
        relation.outputs = relation.outputs and _or_null(relation.outputs, relation.present)
        relation.record = _or_null(relation.record, relation.present)
        relation.present = None


def _or_null(columns: dict[str, exp.Expr], here: exp.Expr) -> dict[str, exp.Expr]:
    return {name: _guarded(tree, here) for name, tree in columns.items()}


def _guarded(tree: exp.Expr, here: exp.Expr) -> exp.Expr:
    plain = isinstance(tree, exp.Column) or (
        isinstance(tree, exp.Coalesce)
        and all(isinstance(each, exp.Column) for each in tree.iter_expressions())
    )
    return tree if plain else exp.Case().when(here.copy(), tree)


def merge_columns(
    kind: JoinKind,
    scope: Scope,
    flat: Flat,
    side: Relation,
    columns: Mapping[str, tuple[exp.Expr, exp.Expr]],
) -> None:
    """Note what USING makes of columns: the value of the side that is there.

    Args:
        kind: Of the join.
        scope: Where the columns are known, and those that were merged before.
        flat: What is joined to.
        side: What is joined.
        columns: By lower-case name what each is before the join, and of the joined side.
    """
    here = present(flat)
    if here is not None and kind in ("RIGHT", "FULL"):
        scope.merged = {name: _guarded(tree, here) for name, tree in scope.merged.items()}
    for name, (outer, inner) in columns.items():
        merged = inner if kind == "RIGHT" else outer
        if kind == "FULL" and here is None:  # of events, NULL where there is none
            merged = exp.Coalesce(this=outer, expressions=[inner])
        if kind == "FULL" and here is not None and side.present is not None:
            left, right = _guarded(outer, here), _guarded(inner, side.present)
            known = left.expressions if isinstance(left, exp.Coalesce) else []
            first = left.this if isinstance(left, exp.Coalesce) else left
            merged = exp.Coalesce(this=first, expressions=[*known, right])
        scope.merged[name] = merged.copy()


def before_join(
    kind: JoinKind, scope: Scope, flat: Flat, relation: Relation, at: Location | None
) -> None:
    """Prepare what is read so far, and a table that is joined to it, for rows that lack one.

    Args:
        kind: Of the join.
        scope: What is read so far, and the joined side.
        flat: The same rows, without it.
        relation: The joined side.
        at: Where the join stands.

    Raises:
        SqlError: A condition on rows cannot be asked before the join.
    """
    if kind in ("LEFT", "FULL"):
        _optional(relation)
    if kind in ("RIGHT", "FULL"):
        for each in scope.relations:
            if each is not relation:
                _optional(each)
        _settle_conditions(flat, relation.alias, at)
    if flat.is_table:
        flat.record = _with_later_time(flat.record, relation.record)


def _settle_conditions(flat: Flat, alias: str, at: Location | None) -> None:
    """Move conditions on rows to their sources, before a join that keeps other rows, too.

    Args:
        flat: What is joined to.
        alias: What is joined.
        at: Where the join stands.

    Raises:
        SqlError: One is about several tables, or about one whose rows may be missing.
    """
    for tree in flat.where:
        read = {column.name.partition(".")[0] for column in tree.find_all(exp.Column)}
        source = next(iter(read)) if len(read) == 1 else ""
        order = [name for name, _ in flat.sources]
        if not keeps_filter(source, order, flat.joins):
            raise SqlError(
                f"'{alias}' is joined by RIGHT or FULL JOIN to rows of a join with a WHERE",
                at_line(at, line_of(tree)),
                "put the tables first that are joined by RIGHT or FULL JOIN, or write the join "
                "with its WHERE to a topic, and read that as a table in another pipeline",
            )
        flat.filters.setdefault(source, []).append(tree)
    flat.where = []


def keeps_filter(alias: str, sources: Sequence[str], joins: Sequence[JoinShape]) -> bool:
    """Tell whether a condition on one source means the same before joins as behind them.

    Args:
        alias: The source.
        sources: All, in their order.
        joins: In their order: each of the source behind the first one.
    """
    if alias not in sources:
        return False
    place = sources.index(alias)
    if place and joins[place - 1].kind not in ("INNER", "RIGHT"):
        return False
    return all(join.kind in ("INNER", "LEFT") for join in joins[place:])


def _with_later_time(
    left: Mapping[str, exp.Expr], right: Mapping[str, exp.Expr]
) -> dict[str, exp.Expr]:
    """Return the record columns of joined rows, whose time is the later one of both."""
    if ROW_TIME not in left or ROW_TIME not in right:
        return {**left}
    time, other = left[ROW_TIME].copy(), right[ROW_TIME].copy()
    return {**left, ROW_TIME: exp.Greatest(this=time, expressions=[other], ignore_nulls=True)}

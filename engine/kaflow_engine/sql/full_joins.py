"""FULL JOIN of events: the rows of a LEFT JOIN, and the right rows that match nothing."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.scope import Relation, matched, to_expr
from kaflow_engine.sql.shape import (
    MATCHED,
    Expr,
    GroupShape,
    JoinShape,
    KeyPair,
    OutputShape,
    QueryShape,
    UnnestShape,
)
from kaflow_engine.sql.syntax import at_line


def present_in(expr: Expr, aliases: frozenset[str]) -> Expr:
    """Return an expression as it is where sources have a row.

    Args:
        expr: An expression.
        aliases: The sources.
    """
    if not any((alias, MATCHED) in expr.uses for alias in aliases):
        return expr
    names = {f"{alias}.{MATCHED}" for alias in aliases}

    def replaced(node: exp.Expr) -> exp.Expr:
        there = isinstance(node, exp.Column) and node.name in names
        return exp.true() if there else node

    return to_expr(parse_expression(expr.sql).transform(replaced), expr.line)


def where_present(keys: Sequence[KeyPair], aliases: frozenset[str]) -> tuple[KeyPair, ...]:
    """Return the keys of a join, computed of records of some sources, which are then there."""
    return tuple(
        KeyPair(outer=present_in(pair.outer, aliases), inner=present_in(pair.inner, aliases))
        for pair in keys
    )


def either_record(left: dict[str, exp.Expr], relation: Relation, alias: str) -> dict[str, exp.Expr]:
    """Return the record columns of rows that have a left record, or a right one alone.

    Args:
        left: Of the left side.
        relation: The right side.
        alias: What the left side is called.
    """
    return {
        name: exp.Case().when(matched(alias), tree.copy()).else_(relation.record[name].copy())
        for name, tree in left.items()
        if name in relation.record
    }


def split_full(shape: QueryShape, at: Location | None) -> tuple[QueryShape, ...]:
    """Return a query with a FULL JOIN of events as two: one whose left rows drive, and one of the
    right rows that match nothing, which drive there; others as they are. Where the rows are
    grouped, it is one, and the right rows stand beside its group.

    Raises:
        SqlError: Its rows are grouped together with those of another query.
    """
    _refuse_unions(shape, at)
    if not _is_full(shape):
        return (shape,)
    full, *joins = shape.joins
    turned = JoinShape(
        alias=shape.driving.alias,
        kind="ANTI",
        keys=tuple(KeyPair(outer=pair.inner, inner=pair.outer) for pair in full.keys),
        line=full.line,
        turned=True,
    )
    first, second, *others = shape.sources
    first, second = replace(first, once=first.query is not None), replace(second, once=False)
    left, right = (_key_of_half(shape, is_left=is_left) for is_left in (True, False))
    halves = (
        _driven(replace(shape, joins=(replace(full, kind="LEFT"), *joins), row_key=left)),
        _driven(
            replace(shape, sources=(second, first, *others), joins=(turned, *joins), row_key=right)
        ),
    )
    return (_together(*halves),) if shape.groups else halves


def _is_full(shape: QueryShape) -> bool:
    return not shape.is_table and any(join.kind == "FULL" for join in shape.joins)


def _refuse_unions(shape: QueryShape, at: Location | None) -> None:
    """Refuse FULL JOINs below what gathers the rows of a UNION ALL."""
    halves = [each for each in (shape, *shape.below) if _is_full(each)]
    for each in halves:
        if each is not shape or shape.beside:
            raise SqlError(
                "a FULL JOIN of events is looked up, or grouped together with other branches of a "
                "UNION ALL",
                at_line(at, each.joins[0].line),
                "group its rows alone; or write the joined rows to a topic, and read that in "
                "another pipeline",
            )


def _together(left: QueryShape, right: QueryShape) -> QueryShape:
    """Return the rows of both halves in the group of the left one."""
    first, *behind = left.groups
    other = replace(right.groups[0], where=(), branch=1)
    beside = replace(right, groups=(other,), outputs=(), row_key=None)
    return replace(left, groups=(replace(first, beside=(beside,)), *behind))


def _key_of_half(shape: QueryShape, *, is_left: bool) -> Expr | None:
    """Return what `_key` means of the rows that have a left record, or of those that have none."""
    there, key = f"{shape.driving.alias}.{MATCHED}", shape.row_key

    def chosen(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Case) or len(node.args["ifs"]) != 1:
            return node
        part: exp.If = node.args["ifs"][0]
        if not isinstance(part.this, exp.Column) or part.this.name != there:
            return node
        return part.args["true"] if is_left else node.args.get("default") or exp.null()

    return key and to_expr(parse_expression(key.sql).transform(chosen), key.line)


def _driven(shape: QueryShape) -> QueryShape:
    """Return a query whose driving side is there in each row: its filters are part of WHERE."""
    driving, *sides = shape.sources
    aliases = frozenset({driving.alias})

    def all_of(parts: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(present_in(part, aliases) for part in parts)

    return replace(
        shape,
        sources=(replace(driving, filter=()), *sides),
        joins=tuple(
            replace(
                join,
                keys=where_present(join.keys, aliases),
            )
            for join in shape.joins
        ),
        where=all_of((*driving.filter, *shape.where)),
        outputs=tuple(_output(output, aliases) for output in shape.outputs),
        unnests=tuple(_unnest(unnest, aliases) for unnest in shape.unnests),
        groups=(*(_group(group, aliases) for group in shape.groups[:1]), *shape.groups[1:]),
        row_key=shape.row_key and present_in(shape.row_key, aliases),
    )


def _output(output: OutputShape, aliases: frozenset[str]) -> OutputShape:
    return replace(output, expr=present_in(output.expr, aliases))


def _unnest(unnest: UnnestShape, aliases: frozenset[str]) -> UnnestShape:
    lists = tuple((name, present_in(of, aliases)) for name, of in unnest.lists)
    return replace(unnest, lists=lists)


def _group(group: GroupShape, aliases: frozenset[str]) -> GroupShape:
    """Return what is grouped of rows in which sources are there."""

    def own(parts: Sequence[tuple[str, Expr]]) -> tuple[tuple[str, Expr], ...]:
        return tuple((name, present_in(of, aliases)) for name, of in parts)

    calls = (replace(call, arguments=own(call.arguments)) for call in group.calls)
    return replace(group, keys=own(group.keys), calls=tuple(calls))

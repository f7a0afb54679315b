"""Refuses what aggregates and windows cannot do on a stream, with the reason and the way out."""

from collections.abc import Iterator

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.groups.calls import aggregates_in, arguments_of, shown_name
from kaflow_engine.sql.groups.grouping import is_grouped
from kaflow_engine.sql.groups.windows import function_named
from kaflow_engine.sql.streamable import Refusal, line_of
from kaflow_engine.sql.syntax import at_line

_SEVERAL = {exp.Rollup: "ROLLUP", exp.Cube: "CUBE", exp.GroupingSets: "GROUPING SETS"}
_BY_CHANCE = {"reservoir_quantile": "approx_quantile"}
"""Aggregates that draw samples, and what to write instead."""
_WITH_OVER = {
    *("cume_dist", "dense_rank", "fill", "first_value", "lag", "last_value", "lead", "nth_value"),
    *("ntile", "percent_rank", "rank", "rank_dense", "row_number"),
}
"""Functions of a row among others."""


def wrong_groups(select: exp.Select, at: Location | None) -> list[SqlError]:
    """Return what is wrong with the aggregates and windows of a SELECT, before names are known."""
    found = [_sets(select), _distinct_on(select), _misplaced(select), *_calls(select)]
    if not is_grouped(select):
        found.append(_windows(select))
    else:
        found.append(_unnested(select))
    return [
        SqlError(refusal[1], at_line(at, line_of(refusal[0])), refusal[2])
        for refusal in found
        if refusal is not None
    ]


def _distinct_on(select: exp.Select) -> Refusal | None:
    clause: exp.Distinct | None = select.args.get("distinct")
    if clause is None or clause.args.get("on") is None:
        return None
    return (
        clause,
        "DISTINCT ON cannot run on a stream",
        "write SELECT DISTINCT with all that must be equal; or GROUP BY it, with first(x) or "
        "arg_min(x, t) of the rest",
    )


def _sets(select: exp.Select) -> Refusal | None:
    call = next((node for part in select.expressions for node in part.find_all(exp.Grouping)), None)
    if call is not None:
        return call, "grouping() is there for GROUPING SETS only", "remove it"
    group: exp.Group | None = select.args.get("group")
    if group is None:
        return None
    for node in group.find_all(*_SEVERAL):
        what = f"GROUP BY {_SEVERAL[type(node)]} cannot run on a stream"
        return node, what, "write a query with its own output for each way of grouping"
    for node in group.expressions:
        if isinstance(node, exp.Tuple) and node.expressions:
            way_out = "write GROUP BY a, b, or struct_pack(a := a, b := b)"
            return node, "GROUP BY has a list in brackets", way_out
    return None


def _misplaced(select: exp.Select) -> Refusal | None:
    """Refuse aggregates where rows are not grouped yet."""
    where = select.args.get("where")
    if where is not None:
        call = next(aggregates_in(where.this), None)
        if call is not None:
            name = shown_name(call)
            way_out = "write HAVING behind GROUP BY, or WHERE in the SELECT around"
            return call, f"the aggregate '{name}' stands in WHERE", way_out
    joins: list[exp.Join] = select.args.get("joins") or []
    for join in joins:
        on = join.args.get("on")
        call = next(aggregates_in(on), None) if on is not None else None
        if call is not None:
            return (
                call,
                f"the aggregate '{shown_name(call)}' stands in a join condition",
                "join first, and group the joined rows",
            )
    return None


def _calls(select: exp.Select) -> Iterator[Refusal]:
    parts: list[exp.Expr] = [*select.expressions]
    if select.args.get("having"):
        parts.append(select.args["having"].this)
    for part in parts:
        for call in aggregates_in(part):
            found = _call(call)
            if found is not None:
                yield call, *found


def _call(call: exp.Expr) -> tuple[str, str] | None:
    name = shown_name(call)
    if name in _BY_CHANCE:
        return (
            f"the aggregate '{name}' gives another value when a batch is replayed",
            f"use {_BY_CHANCE[name]}",
        )
    if name in _WITH_OVER:
        return (
            f"'{name}' needs OVER, which cannot run on a stream",
            "use first, last, arg_min(x, t) or arg_max(x, t) with GROUP BY",
        )
    inner = next((each for arg in arguments_of(call) for each in aggregates_in(arg)), None)
    if inner is not None:
        return (
            f"the aggregate '{shown_name(inner)}' stands in the aggregate '{name}'",
            "aggregate in a derived table, and again in the SELECT around",
        )
    if any(function_named(node) for node in call.find_all(exp.Anonymous)):
        way_out = "name the window in GROUP BY, and select window_start and window_end"
        return f"a window stands in the aggregate '{name}'", way_out
    distinct = call.find(exp.Distinct)
    if distinct is not None and len(distinct.expressions) > 1:
        return (
            f"{name}(DISTINCT …) takes one value",
            "make one of them: count(DISTINCT (a, b))",
        )
    if any(column.is_star for column in call.find_all(exp.Column)):
        return f"{name}() of all columns cannot run here", "write count(*), or name a column"
    if isinstance(call, exp.WithinGroup) and name == "mode":
        return "mode() WITHIN GROUP cannot run here", "write mode(x)"
    return None


def _unnested(select: exp.Select) -> Refusal | None:
    for part in select.expressions:
        node = part.find(exp.Explode)
        if node is not None:
            way_out = "unnest in a derived table, and group in the SELECT around"
            return node, "unnest stands in a SELECT that groups its rows", way_out
    return None


def _windows(select: exp.Select) -> Refusal | None:
    """Refuse windows where nothing is grouped."""
    clause = select.args.get("where")
    for part in [*select.expressions, *([clause] if clause is not None else [])]:
        for node in part.find_all(exp.Anonymous):
            name = function_named(node)
            if name is not None:
                way_out = f"write GROUP BY … {name}(…), and select window_start and window_end"
                return node, f"{name}() stands outside GROUP BY", way_out
    return None

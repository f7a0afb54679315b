"""`QUALIFY row_number() OVER (PARTITION BY k ORDER BY o) = 1`: of each key the first row by `o`.

It is a group with one call, which keeps the row that comes first: `arg_min` or `arg_max` of all
that is selected, as a struct, by what it is ordered by. NULL has its place there, as in ORDER BY.
"""

from collections.abc import Iterator

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.flat import Flat, Group
from kaflow_engine.sql.groups.calls import Calls
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.groups.grouping import is_grouped, text_of
from kaflow_engine.sql.scope import Scope
from kaflow_engine.sql.select_list import conjuncts
from kaflow_engine.sql.streamable import line_of, row_number_of
from kaflow_engine.sql.syntax import DIALECT, at_line

FIRST = "first"
"""What the alias of such a group begins with."""


def first_rows(
    select: exp.Select, scope: Scope, flat: Flat, at: Location | None
) -> dict[str, exp.Expr]:
    """Group rows by what PARTITION BY names, and return what is selected of the first of each.

    Args:
        select: As it was written, with QUALIFY.
        scope: The rows that it reads.
        flat: The same rows, with their outputs; the group is added to it.
        at: Where the SQL text begins.

    Raises:
        ModelError: The order goes both ways, or the rows are grouped at the same time.
    """
    window = row_number_of(select)
    assert window is not None
    line = line_of(select.args["qualify"], select)
    if is_grouped(select):
        raise SqlError(
            "QUALIFY stands in a SELECT that groups its rows",
            at_line(at, line),
            "group in a derived table, and write QUALIFY in the SELECT around",
        )
    group = Group(alias=flat.unique(FIRST), line=line)
    known: dict[str, exp.Expr] = {}
    parts: list[exp.Expr] = window.args.get("partition_by") or []
    for part in parts:
        tree = scope.resolve(part)
        name = f"k{len(group.keys)}"
        group.keys[name] = tree
        group.named.append((part.sql(dialect=DIALECT), name))
        known.setdefault(text_of(tree), group.column(name))
    rest = [tree for tree in flat.outputs.values() if text_of(tree) not in known]
    fields = {text_of(tree): tree for tree in rest}
    if fields:
        calls = Calls()
        call = _first(list(fields.values()), _order(window, scope, at_line(at, line)))
        row = group.column(calls.name_of(call, line))
        group.calls = calls.found
        for number, text in enumerate(fields):
            field = exp.Literal.string(_field(number))
            known[text] = exp.Anonymous(this="struct_extract", expressions=[row.copy(), field])
    flat.groups.append(group)
    flat.record = {TIME: group.column(TIME)}
    return {name: known[text_of(tree)].copy() for name, tree in flat.outputs.items()}


def _first(fields: list[exp.Expr], by: tuple[str, exp.Expr] | None) -> exp.Expr:
    row = _struct({_field(number): tree for number, tree in enumerate(fields)})
    if by is None:
        return exp.First(this=row)
    function, order = by
    return (exp.ArgMin if function == "arg_min" else exp.ArgMax)(this=row, expression=order)


def _order(window: exp.Window, scope: Scope, at: Location | None) -> tuple[str, exp.Expr] | None:
    """Return the function that finds the first row, and what it compares; None without ORDER BY."""
    order: exp.Order | None = window.args.get("order")
    parts: list[exp.Ordered] = order.expressions if order is not None else []
    if not parts:
        return None
    ways = {bool(part.args.get("desc")) for part in parts}
    if len(ways) > 1:
        raise SqlError(
            "ORDER BY of row_number() goes both ways",
            at,
            "write all of it with ASC, or all of it with DESC; of a number order by its negative",
        )
    (descending,) = ways
    fields: dict[str, exp.Expr] = {}
    for number, part in enumerate(parts):
        tree = scope.resolve(part.this)
        is_null = exp.Is(this=tree.copy(), expression=exp.null())
        comes_last = descending == bool(part.args.get("nulls_first"))
        fields[f"n{number}"] = is_null if comes_last else exp.not_(is_null)
        fields[f"o{number}"] = tree
    return "arg_max" if descending else "arg_min", _struct(fields)


def _struct(fields: dict[str, exp.Expr]) -> exp.Struct:
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name), expression=tree.copy())
            for name, tree in fields.items()
        ]
    )


def _field(number: int) -> str:
    return f"c{number}"


def with_qualify(query: exp.Query) -> exp.Query:
    """Return a query in which row numbers that are compared with 1 stand in QUALIFY.

    They are columns of a derived table, or of a WITH, whose rows the SELECT around filters by them.
    """
    found = query.copy()
    for select in list(found.find_all(exp.Select)):
        for inner in _below(select):
            _qualify(inner, {name.lower() for name in _asked(select)})
    return found


def _below(select: exp.Select) -> Iterator[exp.Select]:
    """Yield the SELECT that a SELECT reads, where it is written in the same query."""
    clause = select.args.get("from_") or select.args.get("from")
    node = clause.this if clause is not None else None
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        yield node.this
    if not isinstance(node, exp.Table) or node.args.get("db"):
        return
    above: exp.Expr | None = select
    while above is not None:
        for cte in above.ctes if isinstance(above, exp.Query) else []:
            if cte.alias.lower() == node.name.lower() and isinstance(cte.this, exp.Select):
                yield cte.this
                return
        above = above.parent


def _asked(select: exp.Select) -> Iterator[str]:
    """Yield the columns that WHERE compares with 1."""
    where = select.args.get("where")
    for part in conjuncts(where.this) if where is not None else []:
        if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and _is_one(part):
            yield part.this.name


def _is_one(part: exp.EQ) -> bool:
    return isinstance(part.expression, exp.Literal) and part.expression.name == "1"


def _qualify(select: exp.Select, asked: set[str]) -> None:
    for item in select.expressions:
        named = isinstance(item, exp.Alias) and item.alias.lower() in asked
        if named and isinstance(item.this, exp.Window) and not select.args.get("qualify"):
            window, one = item.this, exp.Literal.number(1)
            line = line_of(window)
            condition = exp.EQ(this=window.copy(), expression=one.copy())
            item.set("this", one)
            select.set("qualify", exp.Qualify(this=condition))
            if line is not None:
                condition.meta["line"] = line
            return

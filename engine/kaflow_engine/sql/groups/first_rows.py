"""`QUALIFY row_number() OVER (PARTITION BY k ORDER BY o) = 1`: of each key the first row by `o`.

It is a group with one call, which keeps the row that comes first: `arg_min` or `arg_max` of all
that is selected, as a struct, by what it is ordered by. NULL has its place there, as in ORDER BY.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.model.record_columns import KEY, NULL_VALUE, RECORD_COLUMNS
from kaflow_engine.sql.flat import Flat, Group
from kaflow_engine.sql.groups.calls import Calls
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.groups.grouping import is_grouped, text_of
from kaflow_engine.sql.scope import Schemas, Scope, element
from kaflow_engine.sql.select_list import conjuncts
from kaflow_engine.sql.streamable import line_of, row_number_of
from kaflow_engine.sql.syntax import DIALECT, at_line

LAST = "last"
"""Marks a row number that counts from the last row; no author can write it."""
FIRST = "first"
"""What the alias of such a group begins with."""


def first_rows(
    select: exp.Select, scope: Scope, flat: Flat, readable: Schemas, at: Location | None
) -> dict[str, exp.Expr]:
    """Group rows by what PARTITION BY names, and return what is selected of the first of each.

    Args:
        select: As it was written, with QUALIFY.
        scope: The rows that it reads.
        flat: The same rows, with their outputs; the group is added to it.
        readable: The columns of topics that a query may use.
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
        is_name = isinstance(part, exp.Column) and not part.table
        group.named.append((part.name if is_name else part.sql(dialect=DIALECT), name))
        known.setdefault(text_of(tree), group.column(name))
    rest = {name: tree for name, tree in flat.outputs.items() if text_of(tree) not in known}
    constant = {name: tree for name, tree in rest.items() if tree.find(exp.Column) is None}
    fields = {name: tree for name, tree in rest.items() if name not in constant}
    known |= {text_of(tree): tree for tree in constant.values()}
    null = window.meta.get(LAST) and _null_value(flat, readable)
    if null:
        fields[NULL_VALUE.name] = null
    if fields:
        order = _order(window, scope)
        calls = Calls()
        is_last = bool(window.meta.get(LAST))
        call = _first(fields, order, at_line(at, line), is_last=is_last)
        row = group.column(calls.name_of(call, line))
        by = ", ".join(part.sql(dialect=DIALECT) for part in order)
        meaning = f"the first row by {by}" if by else f"the {'last' if is_last else 'first'} row"
        group.calls = [replace(each, meaning=meaning) for each in calls.found]
        for name, tree in fields.items():
            field = [row.copy(), exp.Literal.string(name)]
            found = exp.Anonymous(this="struct_extract", expressions=field)
            known.setdefault(text_of(tree), found)
        if null:
            group.where.append(exp.not_(known[text_of(null)].copy()))
    outputs = {name: known[text_of(tree)].copy() for name, tree in flat.outputs.items()}
    key = group.key(outputs)
    flat.groups.append(group)
    flat.record = {TIME: group.column(TIME), **({} if key is None else {KEY: key})}
    return outputs


def _null_value(flat: Flat, readable: Schemas) -> exp.Expr | None:
    """Return what says whether a row, one of a topic as it is, is a null value; None of other rows,
    and where null values are no rows."""
    if not flat.null_rows or flat.joins or flat.groups or flat.unnests:
        return None
    alias, topic = flat.sources[0]
    columns = {column.name: element(alias, column.name) for column in readable(topic) or ()}
    beside = {column.name for column in RECORD_COLUMNS}
    own = {name: tree for name, tree in columns.items() if name not in beside}
    is_whole = bool(own) and own.items() <= flat.values.items() <= columns.items()
    return element(alias, NULL_VALUE.name) if is_whole else None


def _order(window: exp.Window, scope: Scope) -> list[exp.Ordered]:
    """Return what rows are ordered by, its columns resolved."""
    order: exp.Order | None = window.args.get("order")
    found: list[exp.Ordered] = []
    for part in order.expressions if order is not None else []:
        copy = part.copy()
        copy.set("this", scope.resolve(part.this))
        found.append(copy)
    return found


def _first(
    fields: Mapping[str, exp.Expr],
    order: Sequence[exp.Ordered],
    at: Location | None,
    *,
    is_last: bool,
) -> exp.Expr:
    """Return the call that finds the first row, or the last one."""
    row = _struct(fields)
    if not order:
        return exp.Last(this=row) if is_last else exp.First(this=row)
    ways = {bool(part.args.get("desc")) for part in order}
    if len(ways) > 1:
        raise SqlError(
            "ORDER BY of row_number() goes both ways",
            at,
            "write all of it with ASC, or all of it with DESC; of a number order by its negative",
        )
    (descending,) = ways
    by: dict[str, exp.Expr] = {}
    for number, part in enumerate(order):
        is_null = exp.Is(this=part.this.copy(), expression=exp.null())
        comes_last = descending == bool(part.args.get("nulls_first"))
        by[f"n{number}"] = is_null if comes_last else exp.not_(is_null)
        by[f"o{number}"] = part.this
    return (exp.ArgMax if descending else exp.ArgMin)(this=row, expression=_struct(by))


def _struct(fields: Mapping[str, exp.Expr]) -> exp.Struct:
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=tree.copy())
            for name, tree in fields.items()
        ]
    )


def with_last_rows(select: exp.Select, key: Sequence[exp.Expr]) -> exp.Select:
    """Return a query with the last row of each key alone, in the order of records."""
    window = exp.Window(this=exp.RowNumber(), partition_by=[part.copy() for part in key])
    window.meta[LAST] = True
    last = select.copy()
    condition = exp.EQ(this=window, expression=exp.Literal.number(1))
    last.set("qualify", exp.Qualify(this=condition))
    return last


def with_qualify(query: exp.Query) -> exp.Query:
    """Return a query in which row numbers that are compared with 1 stand in QUALIFY.

    They are columns of a derived table, or of a WITH, whose rows the SELECT around filters by them.
    """
    found = query.copy()
    for select in list(found.find_all(exp.Select)):
        for inner in _below(select):
            for part, name in list(_asked(select)):
                if _qualify(inner, name.lower()):
                    _without(select, part)
                    break
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


def _asked(select: exp.Select) -> Iterator[tuple[exp.Expr, str]]:
    """Yield the conditions of WHERE that compare a column with 1, and that column."""
    where = select.args.get("where")
    for part in conjuncts(where.this) if where is not None else []:
        if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column) and _is_one(part):
            yield part, part.this.name


def _is_one(part: exp.EQ) -> bool:
    return isinstance(part.expression, exp.Literal) and part.expression.name == "1"


def _without(select: exp.Select, condition: exp.Expr) -> None:
    """Take a condition out of WHERE."""
    left = [part for part in conjuncts(select.args["where"].this) if part is not condition]
    select.set("where", exp.Where(this=exp.and_(*left, copy=False)) if left else None)


def _qualify(select: exp.Select, asked: str) -> bool:
    """Write the row number that a column is as QUALIFY, where it is one."""
    for item in select.expressions:
        named = isinstance(item, exp.Alias) and item.alias.lower() == asked
        if not named or not isinstance(item.this, exp.Window) or select.args.get("qualify"):
            continue
        window = item.this
        condition = exp.EQ(this=window.copy(), expression=exp.Literal.number(1))
        line = line_of(window)
        if line is not None:
            condition.meta["line"] = line
        item.set("this", exp.Literal.number(1))
        select.set("qualify", exp.Qualify(this=condition))
        return True
    return False

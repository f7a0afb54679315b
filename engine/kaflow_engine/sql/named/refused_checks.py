"""Refuses questions to dynamic tables that cannot be asked where they stand."""

from collections.abc import Collection, Iterator, Mapping

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError, UnknownName
from kaflow_engine.sql.groups.calls import function_of
from kaflow_engine.sql.groups.grouping import is_grouped, text_of
from kaflow_engine.sql.groups.runs.runs import RunText
from kaflow_engine.sql.named.dynamic_tables import DynamicTable
from kaflow_engine.sql.parse import parse_select
from kaflow_engine.sql.streamable import is_unnest, line_of
from kaflow_engine.sql.syntax import DIALECT, at_line

CHECK = "dynamic_table_check"
_WRITE = f"write {CHECK}('<dynamic table>', <value>)"
_ELSEWHERE = "write it to a topic, and ask in another pipeline"
_ELEMENTS = "write the unnested rows to a topic, and ask in another pipeline"


def calls_in(tree: exp.Expr) -> Iterator[exp.Anonymous]:
    """Yield the calls that ask dynamic tables, in their order."""
    calls = tree.find_all(exp.Anonymous, bfs=False)
    return (call for call in calls if call.name.lower() == CHECK)


def name_in(call: exp.Anonymous) -> str | None:
    """Return the name of the dynamic table that a call asks; None of one that names none."""
    first = call.expressions[0] if call.expressions else None
    return first.name if isinstance(first, exp.Literal) and first.is_string else None


def is_last(join: exp.Join, table: DynamicTable, attached: Collection[str]) -> bool:
    """Tell whether what an author joins comes behind a dynamic table: a list, or another table
    that a database is asked for, before which all joins stand that read topics."""
    name = join.this.name.lower() if isinstance(join.this, exp.Table) else ""
    return is_unnest(join) or (not table.attached and name in attached)


def wrong_checks(
    query: exp.Query,
    known: Mapping[str, DynamicTable],
    attached: Collection[str],
    at: Location | None,
) -> Iterator[ModelError]:
    """Yield what is wrong with the calls in a query.

    Args:
        query: As it was parsed.
        known: The dynamic tables, by name in lower case.
        attached: Tables of databases that are looked up, in lower case.
        at: Where its text begins.
    """
    asked: set[str] = set()
    for select in query.find_all(exp.Select):
        for item in (item for item in select.expressions if next(calls_in(item), None)):
            if not isinstance(item, exp.Alias):
                shown = item.sql(dialect=DIALECT, normalize_functions=False)
                what = f"the output column {shown} has no name"
                yield SqlError(what, at_line(at, line_of(item, select)), "give it one with AS")
    for call in calls_in(query):
        place = at_line(at, line_of(call, call.parent_select))
        name = name_in(call)
        if name is None or len(call.expressions) != 2:
            what = f"{CHECK} takes the name of a dynamic table, and a value"
            yield SqlError(what, place, _WRITE)
        elif name.lower() not in known:
            yield _unknown(name, known, place)
        elif refused := _refused(call, known[name.lower()], attached):
            yield SqlError(f"{CHECK}('{name}', …) {refused[0]}", place, refused[1])
        else:
            asked.add(name.lower())
    for cte in query.find_all(exp.CTE):
        if cte.alias.lower() in asked:
            yield SqlError(
                f"the WITH query '{cte.alias}' is called as a dynamic table that is asked",
                at_line(at, line_of(cte)),
                "call it otherwise",
            )


def refuse_in_run(run: RunText) -> None:
    """Refuse questions in SQL over runs of rows, which DuckDB runs as it is.

    Raises:
        SqlError: With the way out.
    """
    call = next(calls_in(parse_select(run.sql, run.start)), None)
    if call is not None:
        raise SqlError(
            f"{CHECK} stands in SQL over runs of rows",
            at_line(run.start, line_of(call)),
            "ask in a query of its own, and let the runs be made of its rows: from: <relation>",
        )


def _unknown(
    name: str, known: Mapping[str, DynamicTable], place: Location | None
) -> UnknownName | SqlError:
    found = UnknownName("dynamic table", name, [table.name for table in known.values()], place)
    if found.hint is not None:
        return found
    hint = f"relations: {{{name}: {{type: dynamic_table, from: <relation>, key: <column>}}}}"
    return SqlError(found.message, place, f"declare it: {hint}")


def _refused(
    call: exp.Anonymous, table: DynamicTable, attached: Collection[str]
) -> tuple[str, str] | None:
    """Return why a call cannot be a join below the rows of its SELECT, and the way out."""
    select, value = call.parent_select, call.expressions[1]
    if call.find_ancestor(exp.Lambda, exp.Comprehension, exp.Select) is not select:
        return "stands in a function of a list", _ELEMENTS
    if select is None or value.find(exp.Column) is None:
        return "asks for a value that reads no column", "write a column of the rows as the value"
    if any(calls_in(value)):
        return "asks for what another one says", _ELSEWHERE
    if value.find(exp.Explode):
        return "asks for elements of a list", _ELEMENTS
    if call.find_ancestor(exp.Join, exp.Select) is not select:
        return "stands in a join", "write it into WHERE, or into a CASE that is selected"
    joins: list[exp.Join] = select.args.get("joins") or []
    behind = [join for join in joins if is_last(join, table, attached) and _reads(value, join)]
    if any(map(is_unnest, behind)):
        return "asks for elements of a list", _ELEMENTS
    if behind:
        called = behind[0].this.alias_or_name
        return f"asks for a value of '{called}', which is looked up later", "ask for another one"
    if is_grouped(select) and not _is_of_rows(call, select):
        return (
            "is asked about groups",
            "write it into WHERE, into GROUP BY, or into an aggregate such as bool_or(…)",
        )
    return None


def _reads(value: exp.Expr, join: exp.Join) -> bool:
    alias = join.this.alias_or_name.lower()
    own = {alias, *(name.lower() for name in join.this.alias_column_names)}
    columns = list(value.find_all(exp.Column))
    return any(
        c.parts[0].name.lower() == alias if c.table else c.name.lower() in own for c in columns
    )


def _is_of_rows(call: exp.Anonymous, select: exp.Select) -> bool:
    """Tell whether a call in a SELECT with groups is about the rows below them."""
    node: exp.Expr = call
    while node.parent is not None and node.parent is not select:
        if function_of(node) is not None:
            return True
        node = node.parent
    if node.arg_key in ("where", "group"):
        return True
    group: exp.Group | None = select.args.get("group")
    if group is None or node.arg_key != "expressions":
        return False
    named = {text_of(call), text_of(node.unalias()), node.alias.lower(), str((node.index or 0) + 1)}
    return bool(group.args.get("all")) or any(text_of(part) in named for part in group.expressions)

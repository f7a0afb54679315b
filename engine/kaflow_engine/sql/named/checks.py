"""`dynamic_table_check('name', value)`: whether a dynamic table has a value, as a LEFT JOIN."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.sql.groups.grouping import text_of
from kaflow_engine.sql.named.dynamic_tables import DynamicTable
from kaflow_engine.sql.named.refused_checks import CHECK, calls_in, is_last, name_in, wrong_checks
from kaflow_engine.sql.named.relations import names_read
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.tables.asked import VALUE, Asked, answer_of, asked_by, asking, bracketed

Tree = TypeVar("Tree", bound=exp.Expr)


def with_checks(
    query: exp.Query,
    tables: Sequence[DynamicTable],
    attached: Collection[str],
    at: Location | None,
) -> exp.Query:
    """Return a query that joins the dynamic tables which it asks, each once for each value.

    Args:
        query: As it was parsed; it is not changed.
        tables: The dynamic tables of the pipeline.
        attached: Tables of databases that are looked up, in lower case.
        at: Where its text begins.

    Raises:
        ModelError: A call is no such question, or stands where none can be asked.
    """
    if next(calls_in(query), None) is None:
        return query
    known = {table.name.lower(): table for table in tables}
    raise_all(list(wrong_checks(query, known, attached, at)))
    copy = query.copy()
    for select in list(copy.find_all(exp.Select)):
        _ask(select, known, attached)
    return copy


def wrong_in_databases(
    tables: Sequence[DynamicTable], queries: Sequence[tuple[exp.Query, Location]]
) -> Iterator[ModelError]:
    """Yield an error where a dynamic table that stays in a database is read, or is not asked.

    Args:
        tables: The dynamic tables of the pipeline.
        queries: Those of relations and outputs, which ask by joins, and where they stand.
    """
    joins = (join for query, _ in queries for join in query.find_all(exp.Join))
    asked = {found.name for join in joins if (found := asked_by(join)) is not None}
    for table in (each for each in tables if each.attached):
        reads = [at for query, at in queries if _reads(query, table.name)]
        for at in reads:
            yield SqlError(
                f"'{table.name}' stays in a database: it is asked, and not read",
                at,
                f"write {CHECK}('{table.name}', <value>); or join '{table.of}' itself",
            )
        if not reads and table.name not in asked:
            yield ModelError(
                f"nothing reads the relation '{table.name}'",
                table.at,
                f"write {CHECK}('{table.name}', <value>), or remove it",
            )


def _reads(query: exp.Query, name: str) -> bool:
    return name.lower() in map(str.lower, names_read(query))


def _ask(select: exp.Select, known: Mapping[str, DynamicTable], attached: Collection[str]) -> None:
    """Join what a SELECT asks, and read the answers in the place of the calls."""
    calls = [call for call in calls_in(select) if call.parent_select is select]
    taken = {part.name.lower() for part in select.find_all(exp.Identifier)}
    aliases: dict[tuple[str, str], str] = {}
    for call in calls:
        value, table = call.expressions[1], known[(name_in(call) or "").lower()]
        line = line_of(call, select)
        question = (table.name, text_of(value))
        if question not in aliases:
            aliases[question] = alias = _unique(table.name, taken)
            _insert(select, _placed(_join(table, alias, value), line), table, attached)
        call.replace(_placed(answer_of(value, _value(aliases[question])), line))


def _join(table: DynamicTable, alias: str, value: exp.Expr) -> exp.Join:
    condition = exp.EQ(this=_value(alias), expression=bracketed(value))
    if table.attached:
        joined: exp.Expr = exp.alias_(exp.Table(this=_quoted(table.of)), _quoted(alias), table=True)
    else:
        column = exp.alias_(exp.column(_quoted(table.key)), _quoted(VALUE))
        inner = exp.select(column).from_(exp.Table(this=_quoted(table.name)))
        joined = inner.subquery(_quoted(alias))
    return asking(exp.Join(this=joined, side="LEFT", on=condition), Asked(table.name, table.key))


def _insert(
    select: exp.Select, join: exp.Join, table: DynamicTable, attached: Collection[str]
) -> None:
    """Put a join behind those of the author, save for what comes last."""
    joins: list[exp.Join] = select.args.get("joins") or []
    places = (n for n, each in enumerate(joins) if is_last(each, table, attached))
    place = next(places, len(joins))
    select.set("joins", [*joins[:place], join, *joins[place:]])


def _value(alias: str) -> exp.Column:
    return exp.column(_quoted(VALUE), table=_quoted(alias))


def _quoted(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _unique(name: str, taken: set[str]) -> str:
    """Return an alias that means nothing else in a SELECT, and take it."""
    found, number = name, 2
    while found.lower() in taken:
        found, number = f"{name}_{number}", number + 1
    taken.add(found.lower())
    return found


def _placed(tree: Tree, line: int | None) -> Tree:
    for node in tree.walk():
        if line is not None:
            node.meta.setdefault("line", line)
    return tree

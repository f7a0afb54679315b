"""Which tables of other databases a statement reads: their columns, and conditions that can be left
to the database."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

_OPERATORS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("=", "="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
}
"""Operator → as it is written, and with its sides changed."""

_CHANGING = (exp.Rand, exp.Randn, exp.Uuid, exp.Anonymous)
"""Functions that may give each row another value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What rows must fulfil: a column against something that no row has a part in."""

    column: str
    operator: str
    value: str
    """SQL."""
    parameters: frozenset[str]
    """Those in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A table of an attached database."""

    database: str
    """In lower case."""
    table: str
    """With its schema, where SQL says one."""
    names: frozenset[str] | None
    """All that a statement names, in lower case, among which the columns are; None: any column."""
    wholes: frozenset[str] = frozenset()
    """Names that stand for a whole row where no column is called so."""
    conditions: tuple[Condition, ...] = ()


def reads_of(sql: str, databases: Collection[str]) -> tuple[Read, ...] | None:
    """Return the tables of some databases that a SELECT reads; None: its SQL cannot be looked into.

    Args:
        sql: A statement that DuckDB can parse.
        databases: Their names, in lower case.
    """
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
    except (SqlglotError, RecursionError):
        return None
    uses: dict[tuple[str, str], list[exp.Table]] = {}
    for table in tree.find_all(exp.Table):
        database = (table.catalog or table.db).lower()
        if database in databases:
            name = f"{table.db}.{table.name}" if table.catalog else table.name
            uses.setdefault((database, name), []).append(table)
    starred = any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
    names = {each.name.lower() for each in tree.find_all(exp.Identifier)}
    tables = {each.alias_or_name.lower() for each in tree.find_all(exp.Table)}
    alone = {each.name.lower() for each in tree.find_all(exp.Column) if not each.table}
    return tuple(
        Read(
            database=database,
            table=name,
            names=None if starred or tree.find(exp.Columns) else frozenset(names),
            wholes=frozenset(alone & tables),
            conditions=tuple(_conditions(used[0])) if len(used) == 1 else (),
        )
        for (database, name), used in uses.items()
    )


def databases_of(sql: str) -> Iterator[str]:
    """Yield the names before tables, of databases or schemas."""
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
    except (SqlglotError, RecursionError):
        return
    yield from (table.catalog or table.db for table in tree.find_all(exp.Table) if table.db)


def _conditions(table: exp.Table) -> Iterator[Condition]:
    """Yield what WHERE asks of the rows of a table, whichever else they are joined with."""
    place = table.parent
    select = place.parent if isinstance(place, exp.From) else None
    if not isinstance(select, exp.Select):
        return
    joins: list[exp.Join] = select.args.get("joins") or []
    if any(join.side not in ("", "LEFT") or join.method for join in joins):
        return
    where: exp.Where | None = select.args.get("where")
    for each in where.this.flatten() if where and isinstance(where.this, exp.And) else ():
        yield from _condition(each, table, alone=not joins)
    if where and not isinstance(where.this, exp.And):
        yield from _condition(where.this, table, alone=not joins)


def _condition(tree: exp.Expr, table: exp.Table, *, alone: bool) -> Iterator[Condition]:
    signs = _OPERATORS.get(type(tree))
    if signs is None:
        return
    for column, value, sign in (
        (tree.this, tree.expression, signs[0]),
        (tree.expression, tree.this, signs[1]),
    ):
        if (
            isinstance(column, exp.Column)
            and (
                column.table.lower() == table.alias_or_name.lower() or (alone and not column.table)
            )
            and not value.find(exp.Column, exp.Query, exp.AggFunc, exp.Window, *_CHANGING)
        ):
            yield Condition(
                column=column.name,
                operator=sign,
                value=value.sql(dialect="duckdb"),
                parameters=frozenset(each.name for each in value.find_all(exp.Placeholder)),
            )

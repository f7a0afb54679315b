"""The SQL of a handler: what it reads, whether rows mean something alone, and what runs of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

from sqlglot import exp

from kaflow_engine.model.sqlflow.lowering.commands import Attached
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, SqlText, listed
from kaflow_engine.model.sqlflow.lowering.statements import parsed

METADATA = {
    "kafka_topic": "_topic",
    "kafka_partition": "_partition",
    "kafka_offset": "_offset",
}
"""Columns of a batch that say where a message stood, with what the engine calls them."""
_NOW = ("now", "today", "get_current_timestamp", "transaction_timestamp")
_WHOLE = ("group", "having", "distinct", "order", "limit", "offset", "qualify", "windows", "with_")
"""Clauses with which the rows of a batch belong together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """A table of an attached database that the SQL joins."""

    database: str
    table: str
    """With its schema, if it is named."""
    node: exp.Table

    @property
    def source(self) -> str:
        """What the source is called that stands for it."""
        return f"{self.database}.{self.table}"

    @property
    def alias(self) -> str:
        """What the SQL calls its rows."""
        return self.node.alias or self.node.name


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerSql:
    """The SQL of a handler, taken apart."""

    sql: SqlText
    tree: exp.Expr | None
    """None: it cannot be read; who plans it says why."""
    batches: tuple[exp.Table, ...] = ()
    """Where it reads the batch."""
    lookups: tuple[Lookup, ...] = ()
    is_alone: bool = True
    """Each row of the batch means something alone, whatever others are beside it."""
    metadata: tuple[str, ...] = ()
    """Which columns of METADATA it reads."""


def read_handler(
    sql: SqlText, batch: str, attached: Mapping[str, Attached], mistakes: Mistakes
) -> HandlerSql:
    """Take the SQL of a handler apart.

    Args:
        sql: One SELECT.
        batch: What it calls the rows of a batch.
        attached: Databases by their names in lower case.
        mistakes: What it reads and is not there is added.
    """
    tree = parsed(sql)
    if tree is None:
        return HandlerSql(sql=sql, tree=None)
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    batches: list[exp.Table] = []
    lookups: list[Lookup] = []
    before = len(mistakes.found)
    for table in tree.find_all(exp.Table):
        name = table.name.lower()
        if isinstance(table.this, exp.Func):
            _refuse_function(table, sql, mistakes)
        elif not table.db and name == batch.lower():
            batches.append(table)
        elif not table.db and name in own:
            continue
        elif (table.catalog or table.db).lower() in attached:
            lookups.append(_lookup(table))
        else:
            known = [batch, *(f"{database}.<table>" for database in attached)]
            line = sql.line(_line(table))
            mistakes.add(f"there is no table '{_dotted(table)}'", line, f"known: {listed(known)}")
    if not batches and len(mistakes.found) == before:
        mistakes.add(f"the SQL does not read {batch}", sql.at, f"write SELECT … FROM {batch}")
    is_alone = _is_alone(tree, batches, lookups)
    for node in () if is_alone else _nows(tree):
        mistakes.add(
            "the time of now is another one when a batch is made again",
            sql.line(_line(node)),
            "take a time of the messages, such as max(timestamp)",
        )
    named = {column.name.lower() for column in tree.find_all(exp.Column)}
    return HandlerSql(
        sql=sql,
        tree=tree,
        batches=tuple(batches),
        lookups=tuple(lookups),
        is_alone=is_alone,
        metadata=tuple(name for name in METADATA if name in named),
    )


def as_query(handler: HandlerSql, rows: str) -> SqlText:
    """Return SQL over the stream of all rows, in the lines of its author.

    Args:
        handler: Whose rows mean something alone.
        rows: The topic or relation that has them.
    """
    edits: list[tuple[int, int, str]] = []
    for table in handler.batches:
        if rows != table.name:
            edits.append(_renamed(table, rows, table.name))
    for lookup in handler.lookups:
        edits.append(_renamed(lookup.node, lookup.source, lookup.node.name))
    return SqlText(text=_edited(handler, [*edits, *_short_columns(handler)]), at=handler.sql.at)


def as_run(handler: HandlerSql) -> SqlText:
    """Return SQL over the rows of a run, which are called `batch`."""
    if handler.lookups:
        return SqlText(text=_without_lookups(handler), at=handler.sql.at)
    edits = [
        _renamed(table, "batch", table.name)
        for table in handler.batches
        if table.name.lower() != "batch"
    ]
    return SqlText(text=_edited(handler, edits), at=handler.sql.at)


def below_run(handler: HandlerSql, rows: str, mistakes: Mistakes) -> SqlText:
    """Return the SQL of the rows that make runs: those of the batch with what they look up.

    Args:
        handler: It looks something up.
        rows: The topic or relation that has the rows of the batch.
        mistakes: What cannot be looked up below is added.
    """
    tree, at = handler.tree, handler.sql.at
    joins = cast(Sequence[exp.Join], tree.args.get("joins") or ()) if tree is not None else ()
    of_lookups = {id(lookup.node) for lookup in handler.lookups}
    outer = [join for join in joins if id(join.this) in of_lookups]
    driving = handler.batches[0] if handler.batches else None
    if len(outer) < len(of_lookups) or driving is None or driving.find_ancestor(exp.From) is None:
        mistakes.add(
            "an attached table is joined where the engine cannot look it up row by row",
            at,
            "join it beside batch: FROM batch LEFT JOIN db.table ON …",
        )
        return handler.sql
    if any(_is_star_of(column, handler) for column in _columns(handler)):
        mistakes.add(
            "the columns of an attached table must be named where rows are grouped or ordered",
            at,
            "write table.column instead of table.*",
        )
    columns = dict.fromkeys((_owner(c, handler), c.name) for c in _columns(handler))
    passed = [
        f"{_quoted(lookup.alias)}.{_quoted(name)} AS {_quoted(f'{lookup.alias}.{name}')}"
        for lookup, name in columns
        if lookup is not None
    ]
    joined = " ".join(_join_text(join, handler) for join in outer)
    alias = _quoted(driving.alias or driving.name)
    selected = ", ".join([f"{alias}.*", *passed])
    return SqlText(text=f"SELECT {selected} FROM {_quoted(rows)} AS {alias} {joined}", at=at)


def _is_alone(tree: exp.Expr, batches: Sequence[exp.Table], lookups: Sequence[Lookup]) -> bool:
    if not isinstance(tree, exp.Select) or any(tree.args.get(clause) for clause in _WHOLE):
        return False
    if len(batches) != 1 or len(tree.args.get("joins") or ()) != len(lookups):
        return False
    inside = (exp.Subquery, exp.Window, exp.AggFunc, exp.SetOperation, exp.Exists)
    if tree.find(*inside) is not None or len(list(tree.find_all(exp.Select))) > 1:
        return False
    called = {node.name.lower() for node in tree.find_all(exp.Anonymous)}
    return not called & _aggregates() if called else True


def _nows(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the calls that give the time of now."""
    yield from tree.find_all(exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime)
    yield from (call for call in tree.find_all(exp.Anonymous) if call.name.lower() in _NOW)


@cache
def _aggregates() -> frozenset[str]:
    import duckdb  # asked only about functions that sqlglot does not know

    sql = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'"
    return frozenset(name for (name,) in duckdb.connect().execute(sql).fetchall())


def _lookup(table: exp.Table) -> Lookup:
    if table.catalog:
        return Lookup(database=table.catalog, table=f"{table.db}.{table.name}", node=table)
    return Lookup(database=table.db, table=table.name, node=table)


def _refuse_function(table: exp.Table, sql: SqlText, mistakes: Mistakes) -> None:
    function = table.this
    name = function.name or function.sql_name() if isinstance(function, exp.Func) else ""
    mistakes.add(
        f"a handler cannot read files by {name.lower()}",
        sql.line(_line(function)),
        "put their rows into a table of a DuckDB or SQLite file, and ATTACH it",
    )


def _columns(handler: HandlerSql) -> Iterator[exp.Column]:
    """Yield the columns of attached tables."""
    for column in handler.tree.find_all(exp.Column) if handler.tree is not None else ():
        if _owner(column, handler) is not None:
            yield column


def _owner(column: exp.Column, handler: HandlerSql) -> Lookup | None:
    found = (x for x in handler.lookups if x.alias.lower() == column.table.lower())
    return next(found, None)


def _is_star_of(column: exp.Column, handler: HandlerSql) -> bool:
    return isinstance(column.this, exp.Star) and _owner(column, handler) is not None


def _join_text(join: exp.Join, handler: HandlerSql) -> str:
    copied = join.copy()
    lookup = next(each for each in handler.lookups if each.node is join.this)
    table = exp.Table(this=exp.to_identifier(lookup.source, quoted=True))
    copied.set("this", exp.alias_(table, lookup.alias, table=True))
    for column in copied.find_all(exp.Column):
        column.set("db", None)
        column.set("catalog", None)
    return copied.sql(dialect="duckdb")


def _without_lookups(handler: HandlerSql) -> str:
    assert handler.tree is not None
    tree = handler.tree.copy()
    looked_up = {each.alias.lower() for each in handler.lookups}
    kept = [
        join for join in tree.args.get("joins") or () if join.alias_or_name.lower() not in looked_up
    ]
    tree.set("joins", kept)
    for column in list(tree.find_all(exp.Column)):
        lookup = _owner(column, handler)
        if lookup is None:
            continue
        name = exp.column(exp.to_identifier(f"{lookup.alias}.{column.name}", quoted=True))
        selected = column.parent is tree and column.arg_key == "expressions"
        column.replace(exp.alias_(name, column.name, quoted=True) if selected else name)
    for table in tree.find_all(exp.Table):
        if table.name.lower() == handler.batches[0].name.lower() and not table.db:
            table.set("alias", table.args.get("alias") or exp.TableAlias(this=table.this.copy()))
            table.set("this", exp.to_identifier("batch"))
    return tree.sql(dialect="duckdb")


def _short_columns(handler: HandlerSql) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that take the database out of names of columns."""
    for column in handler.tree.find_all(exp.Column) if handler.tree is not None else ():
        first, table = column.parts[0], column.args.get("table")
        if len(column.parts) > 2 and isinstance(table, exp.Identifier):
            yield first.meta["start"], table.meta["start"], ""


def _renamed(table: exp.Table, name: str, alias: str) -> tuple[int, int, str]:
    text = _quoted(name) + ("" if table.alias else f" AS {_quoted(alias)}")
    return table.parts[0].meta["start"], table.this.meta["end"] + 1, text


def _edited(handler: HandlerSql, edits: Sequence[tuple[int, int, str]]) -> str:
    text = handler.sql.text
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def _dotted(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts)


def _line(node: exp.Expr) -> int:
    lines = (each.meta["line"] for each in node.walk() if "line" in each.meta)
    return next(lines, 1)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

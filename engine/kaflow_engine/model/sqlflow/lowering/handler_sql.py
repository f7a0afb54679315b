"""The SQL of a handler: what it reads, whether rows mean something alone, and what runs of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from sqlglot import exp

from kaflow_engine.model.sqlflow.lowering.commands import Commands
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, SqlText, listed
from kaflow_engine.model.sqlflow.lowering.statements import parsed
from kaflow_engine.model.sqlflow.lowering.static import Static, read_file

METADATA = {
    "kafka_topic": "_topic",
    "kafka_partition": "_partition",
    "kafka_offset": "_offset",
}
"""Columns of a batch that say where a message stood, with what the engine calls them."""
TIME = "_time"
"""What the engine calls the time of a message."""
_NOW = ("now", "today", "get_current_timestamp", "transaction_timestamp")
_WHOLE = ("group", "having", "distinct", "order", "limit", "offset", "qualify", "windows", "with_")
"""Clauses with which the rows of a batch belong together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """A table that the SQL joins: of an attached database, or one that SQL makes."""

    database: str
    """Empty: it is none of one."""
    table: str
    """With its schema, if it is named."""
    node: exp.Table
    static: Static | None = None
    """Of no database."""

    @property
    def source(self) -> str:
        """What the source is called that stands for it."""
        return self.static.source if self.static else f"{self.database}.{self.table}"

    @property
    def alias(self) -> str:
        """What the SQL calls its rows."""
        return self.node.alias or (self.static.name if self.static else self.node.name)


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


def read_handler(sql: SqlText, batch: str, commands: Commands, mistakes: Mistakes) -> HandlerSql:
    """Take the SQL of a handler apart.

    Args:
        sql: One SELECT.
        batch: What it calls the rows of a batch.
        commands: Databases that they attach, and tables that they make.
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
        if not table.db and name == batch.lower():
            batches.append(table)
        elif not table.db and name in own:
            continue
        elif (table.catalog or table.db).lower() in commands.attached:
            lookups.append(_lookup(table))
        elif (static := _static(table, commands, sql, mistakes)) is not None:
            lookups.append(Lookup(database="", table=static.name, node=table, static=static))
        elif not isinstance(table.this, exp.Func):
            known = [batch, *(each for each, _ in commands.made.values() if each != batch)]
            known += [f"{database}.<table>" for database in commands.attached]
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
    with duckdb.connect() as connection:
        return frozenset(name for (name,) in connection.execute(sql).fetchall())


def _lookup(table: exp.Table) -> Lookup:
    if table.catalog:
        return Lookup(database=table.catalog, table=f"{table.db}.{table.name}", node=table)
    return Lookup(database=table.db, table=table.name, node=table)


def _static(
    table: exp.Table, commands: Commands, sql: SqlText, mistakes: Mistakes
) -> Static | None:
    made = commands.static(table.name) if not table.db and table.name else None
    return made or read_file(table, sql, mistakes)


def _dotted(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts)


def _line(node: exp.Expr) -> int:
    lines = (each.meta["line"] for each in node.walk() if "line" in each.meta)
    return next(lines, 1)

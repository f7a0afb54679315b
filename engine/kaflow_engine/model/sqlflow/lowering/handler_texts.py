"""The SQL of a handler as SQL of the engine: over a stream, or over runs and what makes them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from sqlglot import exp
from sqlglot.tokens import TokenType  # pyright: ignore[reportPrivateImportUsage]

from kaflow_engine.model.sqlflow.lowering.handler_sql import METADATA, TIME, HandlerSql, Lookup
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, SqlText
from kaflow_engine.model.sqlflow.lowering.statements import tokens


def as_query(handler: HandlerSql, rows: str) -> SqlText:
    """Return SQL over the stream of all rows, in the lines of its author.

    Args:
        handler: Whose rows mean something alone.
        rows: The topic or relation that has them.
    """
    edits: list[tuple[int, int, str]] = []
    for table in handler.batches:
        if rows != table.name:
            edits.append(_renamed(table, handler, rows, table.name))
    for lookup in handler.lookups:
        edits.append(_renamed(lookup.node, handler, lookup.source, lookup.alias))
    return SqlText(text=_edited(handler, [*edits, *_short_columns(handler)]), at=handler.sql.at)


def as_run(handler: HandlerSql) -> SqlText:
    """Return SQL over the rows of a run, which are called `batch`."""
    if handler.lookups:
        return above_lookups(handler, "batch")
    edits = [
        _renamed(table, handler, "batch", table.name)
        for table in handler.batches
        if table.name.lower() != "batch"
    ]
    return SqlText(text=_edited(handler, edits), at=handler.sql.at)


def above_lookups(handler: HandlerSql, rows: str) -> SqlText:
    """Return SQL over rows with what they look up.

    Args:
        handler: It looks something up.
        rows: What has these rows: what `below_run` selects.
    """
    return SqlText(text=_without_lookups(handler, rows), at=handler.sql.at)


def below_run(handler: HandlerSql, rows: str, mistakes: Mistakes) -> SqlText:
    """Return the SQL of the rows that make runs or groups: those of the batch with what they look
    up.

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
    if _has_bare_columns(handler):
        passed += [_others_of(lookup, columns) for lookup in handler.lookups if lookup.static]
    joined = " ".join(_join_text(join, handler) for join in outer)
    alias = _quoted(driving.alias or driving.name)
    selected = ", ".join([f"{alias}.*", *passed])
    return SqlText(text=f"SELECT {selected} FROM {_quoted(rows)} AS {alias} {joined}", at=at)


def _has_bare_columns(handler: HandlerSql) -> bool:
    """Tell whether columns are named that do not say whose they are, and are no aliases."""
    assert handler.tree is not None
    named = {each.alias.lower() for each in handler.tree.find_all(exp.Alias)}
    return any(
        len(column.parts) == 1
        and not isinstance(column.this, exp.Star)
        and column.name.lower() not in (*named, *METADATA, TIME)
        and column.find_ancestor(exp.Table) is None
        for column in handler.tree.find_all(exp.Column)
    )


def _others_of(lookup: Lookup, columns: Iterable[tuple[Lookup | None, str]]) -> str:
    """Return what selects the columns of a table that SQL makes and that names none of them: one
    that has the name of one of the batch is refused, as DuckDB would not know which is meant."""
    named = [_quoted(name) for owner, name in columns if owner is lookup]
    without = f" EXCLUDE ({', '.join(named)})" if named else ""
    return f"{_quoted(lookup.alias)}.*{without}"


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
        if _names_database(column, handler):
            column.set("db", None)
            column.set("catalog", None)
    return copied.sql(dialect="duckdb")


def _without_lookups(handler: HandlerSql, rows: str) -> str:
    assert handler.tree is not None
    tree = handler.tree.copy()
    looked_up = {id(each.node) for each in handler.lookups}
    joins: Sequence[exp.Join] = handler.tree.args.get("joins") or ()
    tree.set("joins", [join.copy() for join in joins if id(join.this) not in looked_up])
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
            table.set("this", exp.to_identifier(rows, quoted=True))
    return tree.sql(dialect="duckdb")


def _short_columns(handler: HandlerSql) -> Iterator[tuple[int, int, str]]:
    """Yield the edits that take the database out of names of columns."""
    for column in handler.tree.find_all(exp.Column) if handler.tree is not None else ():
        table = column.args.get("table")
        if _names_database(column, handler) and isinstance(table, exp.Identifier):
            yield column.parts[0].meta["start"], table.meta["start"], ""


def _names_database(column: exp.Column, handler: HandlerSql) -> bool:
    """Tell whether a column is written with its database; `a.b.c` may be fields of fields."""
    databases = {lookup.database.lower() for lookup in handler.lookups}
    return len(column.parts) > 2 and column.parts[0].name.lower() in databases


def _renamed(table: exp.Table, handler: HandlerSql, name: str, alias: str) -> tuple[int, int, str]:
    text = _quoted(name) + ("" if table.alias else f" AS {_quoted(alias)}")
    if isinstance(table.this, exp.Func):
        start = table.this.meta["start"]
        return start, _end_of_call(handler.sql, start), text
    return table.parts[0].meta["start"], table.this.meta["end"] + 1, text


def _end_of_call(sql: SqlText, start: int) -> int:
    """Return where the call ends whose name begins at a place."""
    depth = 0
    for word in tokens(sql):
        if word.start > start and word.token_type is TokenType.L_PAREN:
            depth += 1
        elif word.start > start and word.token_type is TokenType.R_PAREN:
            depth -= 1
            if depth == 0:
                return word.end + 1
    return len(sql.text)


def _edited(handler: HandlerSql, edits: Sequence[tuple[int, int, str]]) -> str:
    text = handler.sql.text
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

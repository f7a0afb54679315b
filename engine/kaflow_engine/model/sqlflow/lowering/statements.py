"""SQL of several statements, taken apart."""

from collections.abc import Iterator
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # pyright: ignore[reportPrivateImportUsage]

from kaflow_engine.errors import SqlError
from kaflow_engine.model.sqlflow.lowering.said import SqlText


class _WithWindows(DuckDB):
    """DuckDB's SQL, in which `session(…)` is a call like others."""

    class Parser(DuckDB.Parser):
        FUNC_TOKENS: ClassVar[set[TokenType]] = {*DuckDB.Parser.FUNC_TOKENS, TokenType.SESSION}


def statements(sql: SqlText) -> Iterator[SqlText]:
    """Yield the statements of a text, each with its place and without its semicolon.

    Raises:
        SqlError: A quoted text or a comment has no end.
    """
    start: Token | None = None
    last: Token | None = None
    for token in tokens(sql):
        if token.token_type is not TokenType.SEMICOLON:
            start, last = start or token, token
            continue
        if start is not None and last is not None:
            yield _between(sql, start, last)
        start = None
    if start is not None and last is not None:
        yield _between(sql, start, last)


def tokens(sql: SqlText) -> list[Token]:
    """Return the words of a text.

    Raises:
        SqlError: A quoted text or a comment has no end.
    """
    try:
        return sqlglot.tokenize(sql.text, read="duckdb")
    except SqlglotError as error:
        raise SqlError("cannot read the SQL", sql.at, "a quoted text has no end") from error


def parsed(sql: SqlText) -> exp.Expr | None:
    """Return the tree of a statement; None: it is not one that can be read."""
    try:
        found = sqlglot.parse(sql.text, dialect=_WithWindows)
    except (SqlglotError, RecursionError):
        return None
    return found[0] if len(found) == 1 else None


def _between(sql: SqlText, start: Token, last: Token) -> SqlText:
    text = sql.text[start.start : last.end + 1]
    return SqlText(text=text, at=sql.line(sql.text.count("\n", 0, start.start) + 1))

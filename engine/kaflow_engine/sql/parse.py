"""SQL text to a syntax tree, with errors that name a line of the author's file."""

import logging
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType  # pyright: ignore[reportPrivateImportUsage]

from kaflow_engine.duck.functions.catalogue import plain
from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.sql.streamable import line_of, reject_set_operations
from kaflow_engine.sql.syntax import DIALECT, AsWritten, at_line, syntax_error, unfinished
from kaflow_engine.sql.types.as_run import as_run

_PLAIN = {TokenType.VAR, TokenType.NUMBER}
_DASHED = re.compile(r"\w-\w")

# it warns of statements that are not SELECT, which are refused below
logging.getLogger("sqlglot").addHandler(logging.NullHandler())


class _WithSession(AsWritten):
    """DuckDB's SQL, in which `session(…)` is a call like others."""

    class Parser(AsWritten.Parser):
        FUNC_TOKENS: ClassVar[set[TokenType]] = {*AsWritten.Parser.FUNC_TOKENS, TokenType.SESSION}


class _AnyCall(_WithSession):
    """The same where functions take any number of arguments: DuckDB itself knows better."""

    class Parser(_WithSession.Parser):
        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}


def parse_query(sql: str, at: Location | None = None) -> exp.Query:
    """Parse one SELECT, or several with UNION ALL between them, in the DuckDB dialect.

    Topic names with dashes may stand unquoted after FROM and JOIN. The tree is shared by all who
    parse the same text: copy what you change.

    Raises:
        SqlError: the text is something else.
    """
    tree = parse_select(sql, at)
    refusal = reject_set_operations(tree)
    if refusal is not None:
        raise SqlError(refusal[1], at_line(at, line_of(refusal[0])), refusal[2])
    return tree


def parse_select(sql: str, at: Location | None = None) -> exp.Query:
    """Parse a query as DuckDB takes it; the tree is shared, as above.

    Raises:
        SqlError: the text is something else.
    """
    try:
        statements = _parsed(sql)
    except ParseError as error:
        raise syntax_error(error, sql, at) from error
    except TokenError as error:
        raise unfinished(sql, at) from error
    if len(statements) != 1:
        raise SqlError(
            "the query is empty" if not statements else "the query holds more than one statement",
            at,
            "write one SELECT per pipeline",
        )
    tree = statements[0]
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise SqlError("the query is not a SELECT", at, "write SELECT … FROM topic …")
    return as_run(tree, at)


def output_names(sql: str) -> tuple[str, ...] | None:
    """Return the names of a query's columns as far as its text says them; None for `*`."""
    try:
        tree = parse_query(sql)
    except ModelError:
        return None
    while not isinstance(tree, exp.Select):
        tree = tree.this  # the names are those of the first branch
    parts: list[exp.Expr] = tree.expressions
    if any(part.is_star for part in parts):
        return None
    return tuple(plain(part.alias_or_name) for part in parts if part.alias_or_name)


@lru_cache(maxsize=1024)
def parse_expression(sql: str) -> exp.Expr:
    """Parse an expression that was written by `to_expr`; the tree is shared, as above."""
    select = _lenient(f"SELECT {sql}")[0]
    assert isinstance(select, exp.Select)
    return select.selects[0]


@lru_cache(maxsize=512)
def _parsed(sql: str) -> tuple[exp.Expr, ...]:
    return _lenient(_quote_topics(sql))


def _lenient(sql: str) -> tuple[exp.Expr, ...]:
    try:
        return tuple(tree for tree in sqlglot.parse(sql, dialect=_WithSession) if tree)
    except ParseError as error:
        if not any("provided arguments" in str(e.get("description")) for e in error.errors):
            raise
        return tuple(tree for tree in sqlglot.parse(sql, dialect=_AnyCall) if tree)


def _quote_topics(sql: str) -> str:
    """Quote `a-b.c` after FROM and JOIN, where DuckDB would see a subtraction."""
    if not _DASHED.search(sql):
        return sql
    tokens = sqlglot.tokenize(sql, read=DIALECT)
    spans = [span for span in _topic_spans(tokens) if "-" in sql[span[0] : span[1]]]
    for start, stop in reversed(spans):
        sql = f'{sql[:start]}"{sql[start:stop]}"{sql[stop:]}'
    return sql


def _topic_spans(tokens: list[Token]) -> Iterator[tuple[int, int]]:
    in_call: list[bool] = []
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            before = tokens[index - 1] if index else None
            in_call.append(before is not None and _names_function(before))
        elif token.token_type is TokenType.R_PAREN and in_call:
            in_call.pop()
        elif token.token_type in (TokenType.FROM, TokenType.JOIN) and not any(in_call[-1:]):
            stop = index + 1
            while stop < len(tokens) and _continues(tokens, index + 1, stop):
                stop += 1
            if stop > index + 2:
                yield tokens[index + 1].start, tokens[stop - 1].end + 1


def _names_function(token: Token) -> bool:
    return token.token_type is TokenType.VAR or token.text.upper() in {"EXTRACT", "SUBSTRING"}


def _continues(tokens: list[Token], first: int, index: int) -> bool:
    token = tokens[index]
    if token.token_type not in _PLAIN | {TokenType.DASH, TokenType.DOT} and not (
        token.text.replace("_", "a").isalnum() and token.token_type is not TokenType.STRING
    ):
        return False
    return index == first or tokens[index - 1].end + 1 == token.start

"""The statements of a processor."""

from sqlglot.tokenizer_core import TokenType

from kaflow_engine.model.lenses.grammar.cursor import Cursor
from kaflow_engine.model.lenses.grammar.queries import query
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import (
    Insert,
    Name,
    Setting,
    Statement,
    Storage,
    With,
)
from kaflow_engine.model.lenses.grammar.tokens import tokens_of

_LITERALS = {TokenType.STRING, TokenType.NUMBER}
_WORDS = ("TRUE", "FALSE")


def parse(source: SourceText) -> tuple[Statement, ...]:
    """Take a processor apart.

    Raises:
        SqlError: It cannot be read; with line and column.
    """
    cursor = Cursor(source, tokens_of(source))
    found: list[Statement] = []
    while cursor.peek() is not None:
        if cursor.accept_kind(TokenType.SEMICOLON):
            continue
        found += _statement(cursor)
    return tuple(found)


def _statement(cursor: Cursor) -> list[Statement]:
    if cursor.is_word("SET"):
        return [_setting(cursor)]
    if cursor.is_word("WITH"):
        return list(_withs(cursor))
    if cursor.is_word("INSERT"):
        return [_insert(cursor)]
    if cursor.is_word("SELECT"):
        cursor.refuse(
            "this SELECT writes to no topic",
            cursor.offset,
            "write INSERT INTO <topic> in the line before it",
        )
    if cursor.is_word("CREATE") or cursor.is_word("USE"):
        word = cursor.take().text.upper()
        cursor.refuse(
            f"{word} belongs to Lenses' SQL Studio",
            cursor.offset,
            "a processor holds SET, WITH and INSERT INTO",
        )
    cursor.fail("SET, WITH or INSERT INTO")


def _setting(cursor: Cursor) -> Setting:
    offset = cursor.offset
    cursor.expect("SET")
    path = [_key(cursor)]
    while cursor.accept_kind(TokenType.DOT):
        path.append(_key(cursor))
    cursor.expect_kind(TokenType.EQ, "'='", hint="write SET name=value;")
    value_offset = cursor.offset
    token = cursor.peek()
    literal = token is not None and token.token_type in _LITERALS
    if not literal and not any(cursor.is_word(word) for word in _WORDS):
        cursor.fail("a text in quotes, a number, TRUE or FALSE")
    value = cursor.take().text
    _end(cursor)
    return Setting(offset=offset, path=tuple(path), value=value, value_offset=value_offset)


def _key(cursor: Cursor) -> Name:
    """Take a part of a setting's name; words of queries mean nothing in it."""
    token = cursor.peek()
    if token is None or token.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
        cursor.fail("the name of a setting")
    cursor.take()
    return Name(offset=token.start, text=token.text)


def _withs(cursor: Cursor) -> list[With]:
    cursor.expect("WITH")
    found: list[With] = []
    while True:
        name = cursor.name("the name of a query")
        cursor.expect("AS")
        cursor.expect_kind(TokenType.L_PAREN, "'('")
        inner = query(cursor)
        cursor.expect_kind(TokenType.R_PAREN, "')'")
        found.append(With(offset=name.offset, name=name, query=inner))
        if not cursor.accept_kind(TokenType.COMMA):
            break
    cursor.accept_kind(TokenType.SEMICOLON)
    return found


def _insert(cursor: Cursor) -> Insert:
    offset = cursor.offset
    cursor.expect("INSERT", "INTO")
    target = cursor.topic("a topic")
    formats: dict[str, Storage] = {}
    if cursor.accept("STORE"):
        for part in ("KEY", "VALUE"):
            if cursor.accept(part, "AS"):
                formats[part] = _storage(cursor)
        if not formats:
            cursor.fail("KEY AS or VALUE AS", hint="write STORE KEY AS STRING VALUE AS JSON")
    if cursor.is_kind(TokenType.L_PAREN) or cursor.is_word("VALUES"):
        cursor.refuse(
            "a processor inserts what a SELECT gives", cursor.offset, "write SELECT STREAM … FROM …"
        )
    inner = query(cursor)
    _end(cursor)
    return Insert(
        offset=offset,
        target=target,
        query=inner,
        key=formats.get("KEY"),
        value=formats.get("VALUE"),
    )


def _storage(cursor: Cursor) -> Storage:
    name = cursor.name("a format")
    text = name.text.upper()
    if cursor.accept_kind(TokenType.L_BRACKET):
        text += f"[{cursor.name('a format').text.upper()}]"
        cursor.expect_kind(TokenType.R_BRACKET, "']'")
    return Storage(offset=name.offset, name=text)


def _end(cursor: Cursor) -> None:
    if cursor.peek() is not None:
        cursor.expect_kind(TokenType.SEMICOLON, "';'")

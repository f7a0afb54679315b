"""Syntax errors of SQL: the line, and a guess at the cause."""

import re
from dataclasses import replace
from difflib import get_close_matches

import sqlglot
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType  # pyright: ignore[reportPrivateImportUsage]

from kaflow_engine.errors import Location, SqlError


class AsWritten(DuckDB):
    """DuckDB's SQL, in which the index of a list stays the number that the author wrote.

    Counted from 0 instead, it would be counted back or not by the type of the list, which is
    another one where an expression takes the place of a name.
    """

    INDEX_OFFSET = 0


DIALECT = AsWritten

_KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "JOIN", "LEFT", "RIGHT", "INNER", "OUTER", "USING", "WITH"),
    *("AND", "NOT", "CASE", "WHEN", "THEN", "ELSE", "END", "NULL", "BETWEEN", "LIKE"),
)
_CLOSE = {
    "comment": "close it with */",
    "quoted text": "close it; a quote inside a text is written twice",
}
_BEFORE, _AFTER = 3, 2
"""Words around the one that cannot be read, among which a misspelled one is looked for."""
_WIDEST = 76
_LOOK = "look at the words before it: a comma, a keyword or an operator may be missing"
_BACKTICKS = 'quote names with ", not with `'
_ENDS = {
    *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING),
    *(TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.STAR),
    *(TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.END),
}
"""What a query can end with."""
_CLOSED = re.compile(r"""'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|\$\$.*?\$\$""", re.DOTALL)
_OPENING = re.compile(r"""['"]|/\*|\$\$""")


def at_line(start: Location | None, line: int | None) -> Location | None:
    """Return the place of line `line` (from 1) of a SQL text that starts at `start`."""
    if start is None or line is None or start.line is None:
        return start
    return replace(start, line=start.line + line - 1, column=0)


def syntax_error(error: ParseError, sql: str, at: Location | None) -> SqlError:
    """Say where reading a text came to an end."""
    details = error.errors[0] if error.errors else {}
    near = str(details.get("highlight") or "").strip()
    line, column = details.get("line"), details.get("col")
    if not near or not isinstance(line, int) or not isinstance(column, int):
        return SqlError("cannot read the SQL", at, "write one SELECT … FROM topic …")
    place, shown = at_line(at, line), _shown(sql, line, near, column)
    if _ends_early(sql, line, near):
        hint = f"something is missing after '{near}'"
        return SqlError(f"the SQL ends too early{shown}", place, hint)
    hint = _BACKTICKS if "`" in near else _misspelled(sql, line, near) or _unbalanced(sql) or _LOOK
    return SqlError(f"cannot read the SQL near '{near}'{shown}", place, hint)


def unfinished(sql: str, at: Location | None) -> SqlError:
    """Say where a quoted text or comment begins that has no end."""
    blanked = _CLOSED.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), sql)
    opened = _OPENING.search(blanked)
    line = blanked.count("\n", 0, opened.start()) + 1 if opened else None
    what = "comment" if opened and opened[0] == "/*" else "quoted text"
    return SqlError(f"a {what} has no end", at_line(at, line), _CLOSE[what])


def _shown(sql: str, line: int, near: str, column: int) -> str:
    """Show the line with a caret below what cannot be read; nothing where it is not found."""
    lines = sql.splitlines()
    text = lines[line - 1].expandtabs(1).rstrip() if line <= len(lines) else ""
    starts = [found.start() for found in re.finditer(re.escape(near.split("\n")[0]), text)]
    if not starts:
        return ""
    # sqlglot counts the last character, and quotes that were added to names of topics
    start = min(starts, key=lambda start: abs(start + len(near) - column))
    first = len(text) - len(text.lstrip())
    if start - first > _WIDEST // 2:
        first = start - _WIDEST // 2
    return f"\n    {text[first : first + _WIDEST]}\n    {' ' * (start - first)}^"


def _ends_early(sql: str, line: int, near: str) -> bool:
    """Tell whether the text stops after a word that needs another one."""
    last = _tokens(sql)[-1]
    return (last.line, last.text) == (line, near) and last.token_type not in _ENDS


def _unbalanced(sql: str) -> str | None:
    kinds = [token.token_type for token in _tokens(sql)]
    more = kinds.count(TokenType.L_PAREN) - kinds.count(TokenType.R_PAREN)
    if not more:
        open_case = kinds.count(TokenType.CASE) > kinds.count(TokenType.END)
        return "CASE … needs an END" if open_case else None
    return "a ) is missing" if more > 0 else "there is a ) too many"


def _misspelled(sql: str, line: int, near: str) -> str | None:
    tokens = _tokens(sql)
    ends = [i for i, token in enumerate(tokens) if token.line == line and token.text == near]
    end = ends[0] if ends else -1
    before = tokens[max(end - _BEFORE, 0) : end + 1]
    for token in [*reversed(before), *tokens[end + 1 : end + 1 + _AFTER]]:
        word = token.text.upper()
        close = get_close_matches(word, _KEYWORDS, n=1, cutoff=0.65)
        if token.token_type is TokenType.VAR and close and word not in _KEYWORDS:
            return f"did you mean {close[0]} instead of '{token.text}'?"
    return None


def _tokens(sql: str) -> list[Token]:
    return sqlglot.tokenize(sql, read=DIALECT)

"""A place among the words of a processor: takes the next one, or says what is missing."""

from collections.abc import Sequence
from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from kaflow_engine.errors import SqlError
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import Duration, Name

RESERVED = frozenset(
    "SELECT FROM WHERE GROUP HAVING JOIN LEFT RIGHT INNER OUTER FULL ON WITHIN LATERAL AS AND "
    "OR NOT CASE WHEN THEN ELSE END IN IS BETWEEN LIKE NULL TRUE FALSE INSERT INTO STORE SET "
    "WITH".split()
)
"""Words that are no names without back-ticks."""

_WITH_BY = frozenset({"WINDOW", "GRACE", "EVENTTIME"})
"""Words that begin a clause where BY follows."""

_UNITS = {"MS": 1, "S": 1_000, "M": 60_000, "H": 3_600_000, "D": 86_400_000}

_IN_TOPIC = {TokenType.VAR, TokenType.NUMBER, TokenType.DASH, TokenType.DOT}


class Cursor:
    """Goes through the words of a text."""

    def __init__(self, source: SourceText, tokens: Sequence[Token]) -> None:
        self.source = source
        self._tokens = tokens
        self._next = 0

    @property
    def offset(self) -> int:
        """Where the next word begins; at the end, where the text ends."""
        token = self.peek()
        return token.start if token else len(self.source.text.rstrip())

    @property
    def end(self) -> int:
        """Where the last word that was taken ends."""
        return self._tokens[self._next - 1].end + 1 if self._next else 0

    def peek(self, ahead: int = 0) -> Token | None:
        """Return the next word, or one behind it; None at the end."""
        place = self._next + ahead
        return self._tokens[place] if place < len(self._tokens) else None

    def take(self) -> Token:
        """Take the next word."""
        token = self.peek()
        if token is None:
            self.fail("more")
        self._next += 1
        return token

    def is_word(self, *words: str, ahead: int = 0) -> bool:
        """Tell whether these words come next, in whatever case."""
        tokens = [self.peek(ahead + place) for place in range(len(words))]
        return all(
            token is not None and token.token_type is TokenType.VAR and token.text.upper() == word
            for token, word in zip(tokens, words, strict=True)
        )

    def is_kind(self, kind: TokenType, ahead: int = 0) -> bool:
        """Tell whether a sign of this kind comes next."""
        token = self.peek(ahead)
        return token is not None and token.token_type is kind

    def accept(self, *words: str) -> bool:
        """Take these words if they come next."""
        if not self.is_word(*words):
            return False
        self._next += len(words)
        return True

    def accept_kind(self, kind: TokenType) -> bool:
        """Take a sign of this kind if it comes next."""
        if not self.is_kind(kind):
            return False
        self._next += 1
        return True

    def expect(self, *words: str, hint: str | None = None) -> None:
        """Take these words, or say that they are missing."""
        if not self.accept(*words):
            self.fail(" ".join(words), hint=hint)

    def expect_kind(self, kind: TokenType, shown: str, hint: str | None = None) -> Token:
        """Take a sign of this kind, or say that it is missing."""
        if not self.is_kind(kind):
            self.fail(shown, hint=hint)
        return self.take()

    def is_name(self) -> bool:
        """Tell whether a name comes next."""
        token = self.peek()
        if token is None:
            return False
        if token.token_type is TokenType.IDENTIFIER:
            return True
        word = token.text.upper()
        if token.token_type is not TokenType.VAR or word in RESERVED:
            return False
        return not (word in _WITH_BY and self.is_word("BY", ahead=1))

    def name(self, what: str = "a name", *, behind_dot: bool = False) -> Name:
        """Take a name; behind a dot END is one, as in `_key.window.end`."""
        if not self.is_name() and not (behind_dot and self.is_word("END")):
            token = self.peek()
            word = token.text if token is not None and token.text.upper() in RESERVED else None
            self.fail(what, hint=f"write it in back-ticks: `{word}`" if word else None)
        token = self.take()
        return Name(offset=token.start, text=token.text)

    def topic(self, what: str) -> Name:
        """Take the name of a topic, which may hold `-` and `.` without back-ticks."""
        joined = self.peek(1)
        first = self.peek()
        if first is None or first.token_type is not TokenType.VAR:
            return self.name(what)
        if joined is None or not _continues(first, joined):
            return self.name(what)
        last = self.take()
        while (token := self.peek()) is not None and _continues(last, token):
            last = self.take()
        return Name(offset=first.start, text=self.source.text[first.start : last.end + 1])

    def duration(self, *, comma: bool = False) -> Duration:
        """Take a duration such as `1h` or `500ms`; with a comma inside `1,h`."""
        shown = "a duration such as " + ("5,m or 1,h" if comma else "30s, 5m, 1h or 1d")
        offset = self.offset
        if not self.is_kind(TokenType.NUMBER):
            self.fail(shown)
        number = self.take()
        if comma:
            self.expect_kind(TokenType.COMMA, shown)
        unit = self.peek()
        if not number.text.isdigit() or unit is None or unit.text.upper() not in _UNITS:
            self.fail(shown, at=offset)
        self.take()
        milliseconds = int(number.text) * _UNITS[unit.text.upper()]
        if milliseconds == 0:
            self.fail(shown, at=offset)
        return Duration(offset=offset, milliseconds=milliseconds)

    def fail(self, expected: str, *, hint: str | None = None, at: int | None = None) -> NoReturn:
        """Say what was expected.

        Raises:
            SqlError: Always.
        """
        token = self.peek()
        if at is not None:
            found = self.source.text[at : self.end].strip() or "nothing"
        else:
            found = self.source.text[token.start : token.end + 1] if token else "the end"
        found = found if found in ("the end", "nothing") else f"'{found}'"
        self.refuse(f"expected {expected}, found {found}", self.offset if at is None else at, hint)

    def refuse(self, message: str, offset: int, hint: str | None = None) -> NoReturn:
        """Refuse what stands at a place.

        Raises:
            SqlError: Always.
        """
        raise SqlError(message, self.source.place(offset), hint)


def _continues(before: Token, token: Token) -> bool:
    """Tell whether a word is part of the same topic's name."""
    return token.start == before.end + 1 and token.token_type in _IN_TOPIC

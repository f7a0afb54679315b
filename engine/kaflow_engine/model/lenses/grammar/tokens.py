"""The words of a processor, taken apart by sqlglot's tokenizer."""

from itertools import pairwise
from typing import ClassVar

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from kaflow_engine.errors import SqlError
from kaflow_engine.model.lenses.grammar.source_text import SourceText


class _Processors(Dialect):
    """Lenses SQL: back-ticks quote names, and no word has a meaning of its own."""

    class Tokenizer(Tokenizer):
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]
        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        COMMENTS: ClassVar[list[str | tuple[str, str]]] = ["--", ("/*", "*/")]
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            "<=": TokenType.LTE,
            ">=": TokenType.GTE,
            "<>": TokenType.NEQ,
            "!=": TokenType.NEQ,
            "||": TokenType.DPIPE,
        }


def tokens_of(source: SourceText) -> list[Token]:
    """Take a text apart.

    Raises:
        SqlError: A text or a name in quotes does not end, or ends in the middle of a word.
    """
    try:
        tokens = _Processors().tokenize(source.text)
    except TokenError as error:
        raise _unfinished(source) from error
    for token, following in pairwise(tokens):
        if (
            token.token_type is TokenType.STRING
            and following.token_type is TokenType.VAR
            and following.start == token.end + 1
        ):
            raise _in_a_word(source, token.end)
    return tokens


def _unfinished(source: SourceText) -> SqlError:
    """Say which quote nothing closes, or which one closes a text in the middle of a word."""
    text, offset, opened = source.text, 0, 0
    while offset < len(text):
        if text.startswith("--", offset):
            end = text.find("\n", offset)
        elif text.startswith("/*", offset):
            end = text.find("*/", offset + 2)
        elif text[offset] in "'`":
            opened, end = offset, text.find(text[offset], offset + 1)
            if text[offset + 1 : end + 1] and text[end + 1 : end + 2].isalpha():
                return _in_a_word(source, end)
        else:
            end = offset
        if end < 0:
            break
        offset = end + 1
    return SqlError(
        "what begins here does not end", source.place(opened), "close it with the same quote"
    )


def _in_a_word(source: SourceText, quote: int) -> SqlError:
    return SqlError(
        "this quote ends a text in the middle of a word",
        source.place(quote),
        "an apostrophe inside of a text is written twice: 'it''s'",
    )

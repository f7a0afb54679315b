"""What a service answers, cut into the JSON text of each row: digits stay as they were written."""

import json
import re
from collections.abc import Iterator

_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False)
_BLANK = re.compile(r"[ \t\n\r]*")


class WrongAnswer(Exception):
    """An answer that is not one about the rows that were sent."""


def texts_of_answer(body: bytes, rows: int | None, member: str | None) -> list[str]:
    """Return the JSON text of each row.

    >>> texts_of_answer(b'[{"id": 1.10}, null]', 2, None)
    ['{"id": 1.10}', 'null']
    >>> texts_of_answer(b'{"metadata": {}, "data": {"id": 1}}', None, "data")
    ['{"id": 1}']

    Args:
        body: JSON, in UTF-8.
        rows: How many there must be, in a list; None: the answer is that of a row itself.
        member: Of each answer, the member that is the row; None: all of it is.

    Raises:
        WrongAnswer: It is no JSON, no list, or one of another length, or a row lacks the member.
    """
    if not body.strip():
        raise WrongAnswer("the answer is empty")
    try:
        text = body.decode("utf-8-sig")
        texts = [_whole(text)] if rows is None else _elements(text)
        if rows is not None and len(texts) != rows:
            raise WrongAnswer(f"the answer has {len(texts):,} rows, and the request has {rows:,}")
        return texts if member is None else [_member(each, member) for each in texts]
    except UnicodeDecodeError as error:
        raise WrongAnswer("the answer is not UTF-8") from error
    except RecursionError as error:
        raise WrongAnswer("the answer is nested too deeply") from error
    except ValueError as error:
        raise WrongAnswer("the answer is not JSON") from error


def _whole(text: str) -> str:
    start = _skip(text, 0)
    _, end = _DECODER.raw_decode(text, start)
    if _skip(text, end) != len(text):
        raise ValueError
    return text[start:end]


def _elements(text: str) -> list[str]:
    if text[_skip(text, 0)] != "[":
        _whole(text)
        raise WrongAnswer("the answer is not a list of rows")
    return [text[start:end] for _, start, end in _parts(text, "]")]


def _member(text: str, name: str) -> str:
    if text[0] == "{":
        for found, start, end in _parts(text, "}"):
            if found == name:
                return text[start:end]
    raise WrongAnswer(f"a row of the answer is not an object with '{name}'")


def _parts(text: str, close: str) -> Iterator[tuple[str | None, int, int]]:
    """Yield name, start and end of each value of a list or an object, which must end the text."""
    at = _skip(text, _skip(text, 0) + 1)
    while text[at : at + 1] != close:
        name: str | None = None
        if close == "}":
            name, end = _DECODER.raw_decode(text, at)
            at = _expect(text, end, ":")
        _, end = _DECODER.raw_decode(text, at)
        yield name, at, end
        at = _skip(text, end)
        if text[at : at + 1] == close:
            break
        at = _expect(text, at, ",")
        if text[at : at + 1] == close:
            raise ValueError
    if _skip(text, at + 1) != len(text):
        raise ValueError


def _expect(text: str, at: int, sign: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != sign:
        raise ValueError
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    assert found is not None
    return found.end()

"""Answers of services, cut into the texts of rows."""

import pytest

from kaflow_engine.transforms.handler.response import WrongAnswer, texts_of_answer

NOT_JSON = "the answer is not JSON"


@pytest.mark.parametrize(
    ("body", "rows", "member", "texts"),
    [
        ("[]", 0, None, []),
        (' [ 1.10 , {"a":[1,2]},"x]" ]\n', 3, None, ["1.10", '{"a":[1,2]}', '"x]"']),
        ('{"a":1}', None, None, ['{"a":1}']),
        ('[{"x":1,"data": {"a":NaN} },{"data":2,"data":3}]', 2, "data", ['{"a":NaN}', "2"]),
        ('\ufeff[{"dat\u00e4":"\u00e9"}]', 1, "dat\u00e4", ['"\u00e9"']),
        ('["a\nb"]', 1, None, ['"a\nb"']),
        (f"[{'9' * 5000}]", 1, None, ["9" * 5000]),
    ],
)
def test_texts_are_as_they_were_written(
    body: str, rows: int | None, member: str | None, texts: list[str]
) -> None:
    assert texts_of_answer(body.encode(), rows, member) == texts


@pytest.mark.parametrize(
    ("body", "rows", "member", "says"),
    [
        (b"", None, None, "the answer is empty"),
        (b" \n", 1, None, "the answer is empty"),
        (b"<html>", 1, None, NOT_JSON),
        (b"[1", 1, None, NOT_JSON),
        (b"[", 1, None, NOT_JSON),
        (b"[1,]", 1, None, NOT_JSON),
        (b"[1 2]", 2, None, NOT_JSON),
        (b"[1] x", 1, None, NOT_JSON),
        (b'{"a":1} {', None, None, NOT_JSON),
        (b'"a', None, None, NOT_JSON),
        (b"\xff", 1, None, "the answer is not UTF-8"),
        (b'{"a":1}', 1, None, "the answer is not a list of rows"),
        (b"[1]", 2, None, "the answer has 1 rows, and the request has 2"),
        (b"[1]", 1, "data", "a row of the answer is not an object with 'data'"),
        (b'[{"a":1}]', 1, "data", "a row of the answer is not an object with 'data'"),
        (b"[" * 100_000, 1, None, "the answer is nested too deeply"),
    ],
)
def test_what_is_no_answer(body: bytes, rows: int | None, member: str | None, says: str) -> None:
    with pytest.raises(WrongAnswer) as caught:
        texts_of_answer(body, rows, member)
    assert str(caught.value) == says

"""Which records of answers are new, whatever was known of those before, and where their text is."""

import json
from collections.abc import Sequence

import pytest

from kaflow_engine.connectors.http.json_values import items, parsed, value_at
from kaflow_engine.connectors.http.new_records import Known, new_records
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.sources import CursorParams

CURSOR = CursorParams(field="at.t", parameter="since", start=None)


def taken(answers: Sequence[str], cursor: CursorParams | None) -> list[list[str]]:
    """Return what is new of answers; what is known passes from one to the next as a note."""
    note: bytes | None = None
    found: list[list[str]] = []
    for answer in answers:
        body = value_at(answer, None)
        assert body is not None
        new, known = new_records([*items(body)], Known.of(note, cursor))
        note = known.note if new else note
        found.append([each.text for each in new])
    return found


def at(*times: str, **more: object) -> str:
    said = "".join(f', "{name}": {json.dumps(value)}' for name, value in more.items())
    records = (f'{{"at": {{"t": {time}}}{said}}}' for time in times)
    return f"[{', '.join(records)}]"


@pytest.mark.parametrize(
    ("answers", "counts"),
    [
        ((at("1", "2"), at("2", "3"), at("3")), [2, 1, 0]),
        ((at("2", "1"), at("3", "1.5"), at("3.0", "3")), [2, 1, 1]),  # no order within an answer
        ((at("1", a=1), at("1", a=2), at("1", a=1), at("1", a=2)), [1, 1, 0, 0]),
        ((at("1", "1"),), [1]),
        ((at("9"), at("10"), at("9007199254740993"), at("9007199254740992")), [1, 1, 1, 0]),
        ((at('"b"'), at('"a"'), at('"c"')), [1, 0, 1]),
        (
            (
                at('"2026-01-31T10:00:00Z"'),
                at('"2026-01-31T10:00:00.5Z"'),
                at('"2026-01-31T11:00:00.500000001+01:00"'),
                at('"2026-01-31 10:00:00.500"'),
            ),
            [1, 1, 1, 0],
        ),
        ((at(), at("1"), at()), [0, 1, 0]),
    ],
)
def test_with_a_cursor(answers: Sequence[str], counts: list[int]) -> None:
    assert [len(new) for new in taken(answers, CURSOR)] == counts


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (("[1, 2]", "[2, 3]", "[3]", "[2, 3]"), [["1", "2"], ["3"], [], []]),
        (('[{"a": 1, "b": 2}]', '[{"b": 2, "a": 1}]', '[{"a": 1.0}]', '[{"a": 1}]'), [1, 0, 1, 1]),
        (("[1, 1]",), [["1"]]),
        (("[1]", "[]", "[1]"), [["1"], [], []]),
        (("[1]", "[2]", "[1]"), [["1"], ["2"], ["1"]]),
    ],
)
def test_without_a_cursor(answers: Sequence[str], expected: list[object]) -> None:
    found = taken(answers, None)
    assert [len(n) if isinstance(e, int) else n for n, e in zip(found, expected, strict=True)] == (
        expected
    )


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ((at("null"),), "a record has no 'at.t' that is a number or a text"),
        ((at("true"),), "a record has no 'at.t' that is a number or a text"),
        (("[1]",), "a record has no 'at.t' that is a number or a text"),
        ((at("1"), at('"1"')), "'at.t' of records is a number and a text"),
        ((at('"x"', '"2026-01-31T10:00"'),), "'at.t' of records is a text and a time"),
    ],
)
def test_what_has_no_place_among_others(answers: Sequence[str], said: str) -> None:
    with pytest.raises(SourceUnfit, match=said):
        taken(answers, CURSOR)


def test_another_cursor_begins_anew() -> None:
    _, known = new_records([], Known(field="n", cursor="7", is_number=True))
    assert Known.of(known.note, CursorParams(field="n", parameter="p", start=None)) == known
    assert Known.of(known.note, CURSOR) == Known(field="at.t")
    assert Known.of(known.note, None) == Known()


@pytest.mark.parametrize("cursor", [CURSOR, None], ids=["with a cursor", "without one"])
def test_a_note_of_another_kind_says_nothing(cursor: CursorParams | None) -> None:
    field = None if cursor is None else cursor.field
    assert Known.of(b'{"of": "acme.orders", "position": "7"}', cursor) == Known(field=field)


TEXT = ' {"a" : {"b":[ 1.10 ,{"c":1e400},"\\u00e4,]" , [] ], "a.b": 0}, "b":{}, "b" : null } '


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (None, TEXT.strip()),
        ("a.b", '[ 1.10 ,{"c":1e400},"\\u00e4,]" , [] ]'),
        ("b", "null"),  # as readers of JSON do: the last one
        ("a.c", None),
        ("a.b.c", None),
        ("b.c", None),
    ],
)
def test_where_values_are(path: str | None, text: str | None) -> None:
    found = value_at(parsed(TEXT.encode()), path)
    assert (None if found is None else found.text) == text


def test_items_keep_their_text() -> None:
    found = value_at(TEXT, "a.b")
    assert found is not None
    assert [each.text for each in items(found)] == ["1.10", '{"c":1e400}', '"\\u00e4,]"', "[]"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[1,]", b"[" * 100_000])
def test_what_is_no_json(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 # of the library, in many words
        parsed(body)

"""Dead letters as rows of a table."""
# pyright: basic

import json

import pyarrow as pa

from kaflow_engine.flow.records import DEAD_LETTER, KEY, OUTPUT, SLOT
from kaflow_engine.model.letters import ABOUT, PREFIX
from kaflow_engine.runtime.tasks.letter_rows import letter_rows

SAID = ("p", "events", "1", "7", "5", "decode", "E", "no number: 'a\0b'", "1")


def test_a_letter_has_its_bytes_and_words_that_every_database_takes():
    about = [
        {"key": f"{PREFIX}{name}", "value": value.encode()}
        for name, value in zip(ABOUT, SAID, strict=True)
    ]
    row = {
        "slot": 1,
        "topic": "dead",
        "key": b"k\0",
        "value": b"a\0b",
        "timestamp": 5,
        "headers": [{"key": "h\0", "value": b"\xff"}, *about],
        "kind": DEAD_LETTER,
    }
    (found,) = letter_rows(pa.Table.from_pylist([row], OUTPUT)).to_pylist()
    assert (found["key"], found["value"]) == (b"k\0", b"a\0b")
    assert found["message"] == "no number: 'a\\x00b'"
    assert json.loads(found["headers"]) == [["h\0", "/w=="]]
    assert (found[KEY], found[SLOT], found["offset"]) == (None, 1, 7)
    texts = [value for value in found.values() if isinstance(value, str)]
    assert not any("\0" in text for text in texts)

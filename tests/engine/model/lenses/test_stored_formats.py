"""The format of an output follows its source unless STORE VALUE AS says otherwise."""

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.model.files.tree import Scalar, find
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.lowering.program import lower_processor
from kaflow_engine.model.lenses.lowering.sources import Declared

STORED = {"JSON": "json", "AVRO": "avro", "PROTOBUF": "protobuf"}


@pytest.mark.parametrize(
    ("source", "follows"),
    [
        (None, "json"),
        ("json", "json"),
        ("avro", "avro"),
        ("protobuf", "protobuf"),
        ("json_schema", "json_schema"),
        ("csv", "json"),
    ],
)
@pytest.mark.parametrize("said", [None, *STORED])
def test_the_format_of_an_output(source: str | None, follows: str, said: str | None) -> None:
    store = f"STORE VALUE AS {said} " if said else ""
    text = f"INSERT INTO o {store}SELECT STREAM x FROM t;"
    declared = {"t": Declared(format=source)}
    lowered = lower_processor(SourceText(text=text, at=Location("p", 1)), declared)
    assert lowered.mistakes == ()
    found = find(lowered.keys, ("outputs", 0, "format"))
    assert isinstance(found, Scalar)
    assert found.text == (STORED[said] if said else follows)

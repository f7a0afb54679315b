"""What is shown: rows of nodes and dead letters, as data and as lines of JSON."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from kaflow_engine.flow.records import DEAD_LETTER
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.formats.keys import text_of_key
from kaflow_engine.model.letters import PREFIX
from kaflow_engine.preview.nodes import Node
from kaflow_engine.preview.plan import PreviewPlan

Operation = Literal["insert", "update", "upsert", "delete"]
_OF_HEADERS: Mapping[str, Operation] = {"c": "insert", "u": "update", "d": "delete"}
_OF_LETTERS = ("topic", "partition", "offset", "phase", "error", "message")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """What happens to a row of a node."""

    node: Node
    operation: Operation
    """`insert` where each row is one more; else what happens to the row of its key."""
    key: str | None
    row: str | None
    """JSON text, as a topic would have it; None of a row that goes."""

    def line(self) -> str:
        """Return a JSON object: node, kind, op, key where there is one, and the row."""
        about: dict[str, str] = {"node": self.node.name, "kind": self.node.kind}
        about["op"] = self.operation
        if self.key is not None:
            about["key"] = self.key
        # the text of the row, whose numbers may have more digits than Python's
        return f'{json.dumps(about, ensure_ascii=False)[:-1]}, "row": {self.row or "null"}}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLetter:
    """A record that a run would write to its dead letters."""

    about: Mapping[str, str]
    """Topic, partition, offset, phase, error and message."""

    def line(self) -> str:
        """Return a JSON object: what is said of the record, as `dead_letter`."""
        return json.dumps({"dead_letter": dict(self.about)}, ensure_ascii=False)


Shown = ShownRow | ShownLetter


def shown(plan: PreviewPlan, output: pa.Table) -> Iterator[Shown]:
    """Yield what a batch has made, in its order: rows of the nodes that are wanted, and all dead
    letters.

    Args:
        plan: What ran.
        output: Schema OUTPUT.
    """
    nodes = {node.target: (node, plan.sink_of(node)) for node in plan.nodes}
    for row in output.to_pylist():
        headers = {each["key"]: each["value"] for each in row["headers"] or ()}
        if row["kind"] == DEAD_LETTER:
            texts = {name: _text(headers.get(PREFIX + name)) for name in _OF_LETTERS}
            yield ShownLetter(about=texts)
        elif row["topic"] in nodes:
            yield _row(*nodes[row["topic"]], row, headers)


def _row(
    node: Node, sink: TopicSink, row: Mapping[str, Any], headers: Mapping[str, bytes | None]
) -> ShownRow:
    key: bytes | None = row["key"]
    value: bytes | None = row["value"]
    return ShownRow(
        node=node,
        operation=_operation(sink, value, headers),
        key=None if key is None else text_of_key(sink.key_format, key),
        row=None if value is None else value.decode(),
    )


def _operation(
    sink: TopicSink, value: bytes | None, headers: Mapping[str, bytes | None]
) -> Operation:
    if sink.operation is not None:
        return _OF_HEADERS[_text(headers.get(sink.operation))]
    if not sink.compacted:
        return "insert"
    return "delete" if value is None else "upsert"


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")

"""Rows of webhooks in an envelope that says what happens to them."""

from typing import Any

import pytest

from kaflow_engine.connectors.sinks import sink_kind
from tests.engine.connectors.test_webhook import COLUMNS, bodies, rows, send
from tests.receiver import running_receiver


@pytest.mark.parametrize(
    ("changes", "column", "sent"),
    [
        (False, None, [("i", {"id": 1, "name": "é1"}), ("i", {"id": 2, "name": "é2"})]),
        (False, "name", [("é1", {"id": 1}), ("é2", {"id": 2})]),
        (True, None, [("u", {"id": 1, "name": "é1"}), ("d", None)]),
    ],
)
def test_an_envelope_says_what_happens(
    changes: bool, column: str | None, sent: list[tuple[str, object]]
) -> None:
    said = {"envelope": "metadata", "op_column": column}
    given = rows(1, 2, gone=(2,) if changes else ())
    with running_receiver() as receiver:
        send(receiver.url, given, changes=changes, said=said)
    received = [(body["metadata"]["op"], body["data"]) for body in bodies(receiver)]
    assert received == sent
    keys = [body["metadata"].get("key") for body in bodies(receiver)]
    assert keys == [None, "k2" if changes else None]  # all that there is of what goes


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"envelope": "metadata", "op_column": "name"}, []),
        ({"op_column": "name"}, ["'op_column' is of an envelope"]),
        ({"envelope": "metadata", "op_column": "op"}, ["its rows have no column 'op'"]),
    ],
)
def test_the_column_of_operations_is_one_of_the_rows(
    settings: dict[str, Any], why: list[str]
) -> None:
    assert [found.why for found in sink_kind("webhook").unfit(COLUMNS, settings)] == why

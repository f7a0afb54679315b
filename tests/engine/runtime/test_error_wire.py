"""What crosses from a worker to the driver is data: an error of a known class, and its words."""
# pyright: basic

import base64
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaflow_engine.connectors.command.errors import CommandAway, CommandUnfit
from kaflow_engine.connectors.dagster.requests import DagsterAway, DagsterRefused
from kaflow_engine.connectors.journal.sessions import AskedToWait, ReceiverEnded
from kaflow_engine.connectors.mqtt.client import MqttAway, MqttUnfit
from kaflow_engine.connectors.websocket.errors import WebsocketAway, WebsocketUnfit
from kaflow_engine.errors import (
    KaflowError,
    Location,
    ModelError,
    Problems,
    SinkError,
    SourceError,
    UnknownName,
)
from kaflow_engine.runtime.failures.error_wire import SECRET, TaskFailed
from kaflow_engine.runtime.failures.failures import _KINDS, carried, to_error
from kaflow_engine.serving.tables import ReadsTooMuch
from kaflow_engine.sql.scope import NeedsSchema, UnknownColumn


class Py4JJavaError(Exception):
    """Stands for what py4j raises."""


def arrived(text: object) -> KaflowError:
    return to_error(Py4JJavaError(f"org.apache.spark.X: job aborted: {text}\n\tat scala"))


@pytest.mark.parametrize("name", _KINDS)
def test_every_kind_arrives_as_it_was(name: str) -> None:
    sent = _KINDS[name]("what", hint="cure")
    found = arrived(carried(sent))
    assert (type(found), found.message, found.hint) == (type(sent), "what", "cure")


def test_a_place_and_a_stack_arrive_too() -> None:
    found = arrived(carried(ModelError("what", Location("p.yaml", 3))))
    assert found.at == Location("p.yaml", 3)
    failed = arrived(carried(TaskFailed("what", "stack\nof it")))
    assert isinstance(failed, TaskFailed)
    assert failed.details == "stack\nof it"


def test_errors_that_list_others_arrive_as_their_text() -> None:
    found = arrived(carried(Problems([UnknownName("column", "x", ["y"]), ModelError("b")])))
    assert type(found) is ModelError
    assert found.message == "unknown column 'x'\n  hint: known: y\nb"


def test_every_error_of_ours_has_its_place_in_the_table() -> None:
    ours = {k.__name__ for k in _below(KaflowError) if k.__module__.startswith("kaflow_engine.")}
    of_files = {kind.__name__ for kind in (UnknownName, Problems, NeedsSchema, UnknownColumn)}
    of_commands = {kind.__name__ for kind in (DagsterAway, DagsterRefused, ReadsTooMuch)}
    of_drivers = {kind.__name__ for kind in (CommandAway, CommandUnfit)}
    of_receivers = {kind.__name__ for kind in (ReceiverEnded, AskedToWait)}  # on the driver, too
    of_receivers |= {k.__name__ for k in (MqttAway, MqttUnfit, WebsocketAway, WebsocketUnfit)}
    assert ours - of_files - of_commands - of_drivers - of_receivers == set(_KINDS)


def _below(kind: type[KaflowError]) -> Iterator[type[KaflowError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


class _Touch:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def coded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def as_json(**wire: object) -> str:
    return coded(json.dumps(wire).encode())


WIRES = {
    "another class": as_json(kind="os.system", message="touch x"),
    "a class that is no error": as_json(kind="Path", message="x"),
    "a key too many": as_json(kind="SinkError", message="m", run="touch x"),
    "another type": as_json(kind="SinkError", message={"__reduce__": "x"}),
    "a line that is none": as_json(kind="SinkError", message="m", file="f", line=-1),
    "no JSON": coded(b"\xff\xfe{"),
    "a list": coded(b"[1]"),
    "torn": as_json(kind="SinkError", message="m")[:-7],
    "nothing": "",
}


@pytest.mark.parametrize("secret", [SECRET, "", "0" * 32], ids=["ours", "none", "guessed"])
@pytest.mark.parametrize("wire", WIRES)
def test_whatever_a_text_holds_is_only_text(secret: str, wire: str) -> None:
    found = arrived(f"<<kaflow:{secret}:{WIRES[wire]}>>")
    assert isinstance(found, KaflowError)
    assert type(found).__name__ in ("RunError", "TaskFailed")


@pytest.mark.parametrize(
    "marker",
    ["<<kaflow:{}>>", "<<kaflow::{}>>", f"<<kaflow:{SECRET}:{{}}>>"],
    ids=["bare", "none", "ours"],
)
def test_a_pickle_in_a_text_is_never_opened(tmp_path: Path, marker: str) -> None:
    goal = tmp_path / "ran"
    forged = marker.format(coded(pickle.dumps(_Touch(goal))))
    arrived(f"file:/archive/{forged}.parquet is not a Parquet file")
    assert not goal.exists()


def test_another_drivers_mark_decides_nothing() -> None:
    found = arrived(carried(SinkError("no"), secret="0" * 32))
    assert not isinstance(found, SinkError | SourceError)

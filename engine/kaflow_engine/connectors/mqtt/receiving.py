"""Subscribes to topics of MQTT, and acknowledges what is written down."""

import json
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from kaflow_engine.connectors.journal.journal import Message
from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.connectors.journal.sessions import Line, in_threads
from kaflow_engine.connectors.mqtt.client import Connection, MqttAway, connected, driver
from kaflow_engine.flow.sources import MqttParams
from kaflow_engine.state.storage.store import LocalStore

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage

TOPIC_HEADER = "mqtt.topic"
_LOOK_S = 0.2
"""How long to wait for a message before looking whether it all ends."""
_MOST_AT_ONCE = 1_000
_STANDS_S = 5.0
"""A connection that stood so long was no failure, though nothing came."""
_SUBSCRIBED = "subscribed.json"
"""Beside the journal: which topics the session of the broker has."""


class MqttTopics:
    """Takes messages; each source is a client of its broker, which keeps what it misses."""

    def receiving(self, inlets: Sequence[Inlet]) -> AbstractContextManager[None]:
        """Take messages to the end of the block.

        Raises:
            MqttUnfit: There is no client.
        """
        if inlets:
            driver()
        return in_threads(inlets, take)


def take(line: Line) -> None:
    """Take the messages of one connection.

    What was written down, and not acknowledged before the connection broke, comes once more. What
    was received and not written down is left to the broker then.

    Raises:
        MqttAway: It broke, or could not be opened.
        MqttUnfit: The broker does not let us in, or subscribe.
        StateError: Messages could not be written down, or what is subscribed to.
    """
    params: MqttParams = line.inlet.params
    if not line.await_room():
        return
    with connected(line.inlet) as connection:
        since = time.monotonic()
        _subscribe(connection, params, line.inlet.journal.folder / _SUBSCRIBED)
        while line.await_room():
            messages = connection.gathered(_LOOK_S, _MOST_AT_ONCE)
            if connection.has_ended:
                raise MqttAway(f"the connection to the broker {params.broker} broke")
            if messages:
                _write(line, connection, messages)
            elif time.monotonic() - since > _STANDS_S:
                line.patience.worked()
        if messages := connection.gathered(0, _MOST_AT_ONCE):
            _write(line, connection, messages)


def _write(line: Line, connection: Connection, messages: Sequence["MQTTMessage"]) -> None:
    line.write([_message(each) for each in messages])
    connection.acknowledge(messages)


def _message(message: "MQTTMessage") -> Message:
    topic = (TOPIC_HEADER, message.topic.encode())
    return Message(value=bytes(message.payload), headers=(topic,))


def _subscribe(connection: Connection, params: MqttParams, noted: Path) -> None:
    """Subscribe, unless the broker remembers it: each time, what it retains comes again."""
    had = _noted(noted)
    if connection.session_present:
        if had == [*params.topics]:
            return
        if left := [topic for topic in had if topic not in params.topics]:
            connection.unsubscribe(left)
    connection.subscribe(params.topics)
    LocalStore(noted.parent).put(noted.name, json.dumps(params.topics).encode())


def _noted(file: Path) -> list[str]:
    try:
        return json.loads(file.read_text())
    except (FileNotFoundError, ValueError):  # cut off by a crash: subscribing again is harmless
        return []

"""A connection to a broker of MQTT, and what comes over it; errors in our own words."""

import queue
import ssl
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.errors import SourceAway, SourceError, SourceUnfit
from kaflow_engine.extras import EXTRAS
from kaflow_engine.flow.sources import MqttParams

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

_ANSWER_S = 10.0
_LOOK_S = 0.2
"""How long to wait before looking whether the connection broke."""
_MOST_MESSAGES = 10_000
"""What is received and not written down yet; a broker sends no more than it is allowed to."""
_LOGIN_REFUSED = {"Bad user name or password", "Not authorized"}
_BROKER_AWAY = {"Server unavailable", "Server busy"}


class MqttAway(SourceAway):
    """The broker does not answer, or has gone: it may heal."""


class MqttUnfit(SourceUnfit):
    """The broker does not let us in or subscribe, or there is no client: someone must act."""


def driver() -> ModuleType:
    """Return the client library.

    Raises:
        MqttUnfit: It is not installed.
    """
    try:
        import paho.mqtt.client as found
    except ImportError as error:
        raise MqttUnfit(
            "sources of type mqtt need the client paho-mqtt, which is not installed here",
            hint=f"run {EXTRAS['mqtt'].install}",
        ) from error
    return found


@dataclass
class Connection:
    """A connection that is open, and the messages that came over it."""

    params: MqttParams
    client: "Client"
    session_present: bool = False
    """Whether the broker has kept what is subscribed to, and what was not acknowledged."""
    _came: "queue.Queue[MQTTMessage]" = field(
        default_factory=lambda: queue.Queue(maxsize=_MOST_MESSAGES)
    )
    _answers: "queue.Queue[Any]" = field(default_factory=queue.Queue[Any])
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def has_ended(self) -> bool:
        """Whether it broke: the broker sends again what was not acknowledged."""
        return self._ended.is_set()

    def gathered(self, wait: float, most: int) -> list["MQTTMessage"]:
        """Return messages that have come, or come soon: one sync of the disk serves many."""
        found: list[MQTTMessage] = []
        with suppress(queue.Empty):
            while len(found) < most:
                found.append(self._came.get(timeout=wait) if not found else self._came.get_nowait())
        return found

    def acknowledge(self, messages: Sequence["MQTTMessage"]) -> None:
        """Let the broker forget messages."""
        for message in messages:
            if message.qos:
                self.client.ack(message.mid, message.qos)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe; what the broker retains of these topics comes again.

        Raises:
            MqttAway: The connection broke.
            MqttUnfit: The broker does not allow it.
        """
        self.client.subscribe([(topic, 1) for topic in topics])
        for topic, code in zip(topics, self._answer("to subscribe"), strict=True):
            if code.is_failure:
                raise MqttUnfit(
                    f"{_called(self.params)} does not let us subscribe to '{topic}'",
                    hint="correct 'topics', or ask for the right to read them",
                )

    def unsubscribe(self, topics: Sequence[str]) -> None:
        """End subscriptions.

        Raises:
            MqttAway: The connection broke.
        """
        self.client.unsubscribe([*topics])
        self._answer("to unsubscribe")

    def opened(self) -> None:
        """Return when the broker has let us in.

        Raises:
            MqttAway: It cannot, now.
            MqttUnfit: It does not.
        """
        flags, code = self._answer("to connect")
        if code.is_failure:
            raise _refused(self.params, str(code))
        self.session_present = flags.session_present

    def attach(self) -> None:
        """Hear what the client says."""

        def connected(client: "Client", user: Any, flags: Any, code: Any, about: Any) -> None:
            self._answers.put((flags, code))

        def answered(client: "Client", user: Any, mid: int, codes: Any, about: Any) -> None:
            self._answers.put(codes)

        def ended(client: "Client", user: Any, flags: Any, code: Any, about: Any) -> None:
            self._ended.set()

        def came(client: "Client", user: Any, message: "MQTTMessage") -> None:
            while not self._ended.is_set():
                with suppress(queue.Full):
                    return self._came.put(message, timeout=_LOOK_S)

        self.client.on_connect = connected
        self.client.on_subscribe = self.client.on_unsubscribe = answered
        self.client.on_disconnect = ended
        self.client.on_message = came

    def _answer(self, asked: str) -> Any:
        deadline = time.monotonic() + _ANSWER_S
        while time.monotonic() < deadline:
            ended = self.has_ended  # before the look: an answer may be the last word
            with suppress(queue.Empty):
                return self._answers.get(timeout=0 if ended else _LOOK_S)
            if ended:
                break
        raise MqttAway(f"{_called(self.params)} does not answer when asked {asked}")

    def close(self) -> None:
        """Send what is acknowledged, and end the connection; the session stays."""
        self.client.disconnect()
        self._ended.set()  # nothing that still comes waits for a place
        self.client.loop_stop()


@contextmanager
def connected(inlet: Inlet) -> Generator[Connection]:
    """Have a connection, to the end of the block.

    Raises:
        MqttAway: The broker does not answer.
        MqttUnfit: It does not let us in, or there is no client.
    """
    params: MqttParams = inlet.params
    mqtt = driver()
    parts = urlsplit(params.broker)
    has_tls = parts.scheme.lower() == "mqtts"
    client: Any = mqtt.Client(
        mqtt.CallbackAPIVersion.VERSION2,
        client_id=params.client_id,
        clean_session=False,
        reconnect_on_failure=False,
        manual_ack=True,
    )
    if params.user is not None:
        password = None if params.password is None else inlet.secrets[params.password]
        client.username_pw_set(params.user.with_secret(inlet.secrets), password)
    connection = Connection(params, client)
    connection.attach()
    try:
        if has_tls:
            client.tls_set(ca_certs=params.ca)
        place = parts.hostname or "", parts.port or (8883 if has_tls else 1883)
        client.connect(*place, keepalive=max(1, params.keepalive // 1000))
    except (OSError, ValueError) as error:
        # without its frames, which hold the library's socket open
        raise _not_open(params, error) from error.with_traceback(None)
    client.loop_start()
    try:
        connection.opened()
        yield connection
    finally:
        connection.close()


def _called(params: MqttParams) -> str:
    return f"the broker {params.broker}"


def _not_open(params: MqttParams, error: Exception) -> SourceError:
    match error:
        case ssl.SSLCertVerificationError():
            return MqttUnfit(
                f"the certificate of {_called(params)} cannot be verified",
                hint="name the file with its authority in 'ca' of the source",
            )
        case FileNotFoundError() | PermissionError():
            return MqttUnfit(
                f"'{params.ca}' cannot be read", hint="correct 'ca' of the source: a file of PEM"
            )
        case ssl.SSLError():
            return MqttUnfit(
                f"{_called(params)} has no TLS there, or '{params.ca}' is no file of PEM",
                hint="correct 'broker' or 'ca' of the source",
            )
        case OSError(strerror=said) if said:
            return MqttAway(f"{_called(params)} cannot be reached: {said.lower()}")
        case TimeoutError():
            return MqttAway(f"{_called(params)} does not answer")
        case _:
            return MqttAway(f"{_called(params)} cannot be reached: {type(error).__name__}")


def _refused(params: MqttParams, said: str) -> SourceError:
    text = f"{_called(params)} does not let us in: {said.lower()}"
    if said in _BROKER_AWAY:
        return MqttAway(text)
    if said in _LOGIN_REFUSED:
        return MqttUnfit(text, hint="correct 'user' and 'password' of the source")
    return MqttUnfit(text, hint="correct 'client_id' and 'broker' of the source")

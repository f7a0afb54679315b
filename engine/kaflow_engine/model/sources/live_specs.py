"""Sources that cannot be read twice: what they give is written down when it comes."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kaflow_engine.model.durations import Duration, format_duration
from kaflow_engine.model.names import Filled
from kaflow_engine.model.sources.addresses import (
    Broker,
    HeaderName,
    Headers,
    HttpUrl,
    JsonPath,
    Listen,
    NextPage,
    SecretSpec,
    TopicFilters,
    UrlPath,
    Value,
    WebsocketUrl,
    secrets_among,
)
from kaflow_engine.model.sources.source_spec import SourceSpec
from kaflow_engine.model.spec import Path, Spec

Wait = Annotated[Duration, Field(gt=0)]


class LiveSourceSpec(SourceSpec):
    """A source whose records are written to a journal, and read from there."""

    unit: ClassVar[str]
    """What its records come in."""
    max_backlog: int = Field(default=1_000_000, gt=0)
    """Records that may wait for the pipeline; beyond it, no more are taken."""

    @property
    def record_time(self) -> str:
        """The clock of who writes them down."""
        return f"time when the {self.unit} was written down"

    @property
    def guarantee(self) -> str:
        """From when on each record is processed exactly once."""
        raise NotImplementedError


class SignatureSpec(Spec):
    """How senders show that they know a secret: the HMAC (SHA-256) of the body, in hexadecimal."""

    secret: Filled
    """One of `secrets` in the configuration."""
    header: HeaderName = "X-Hub-Signature-256"
    """Where the digits stand."""
    prefix: str = "sha256="
    """Stands before the digits."""


class WebhookSourceSpec(LiveSourceSpec):
    """Requests that others send: each is a record, and is answered when it is written down."""

    unit: ClassVar[str] = "request"
    type: Literal["webhook"]
    listen: Listen
    """Host and port."""
    path: UrlPath = "/"
    """Of the URL."""
    signature: SignatureSpec | None = None
    """How senders show who they are; None: anyone may send."""
    idempotency_header: HeaderName = "Idempotency-Key"
    """Tells a request that is sent again from a new one, for a day."""
    max_bytes: int = Field(default=1_048_576, gt=0)
    """Of the body of a request."""
    max_connections: int = Field(default=1_000, gt=0)
    """At one time; beyond them senders get 503."""

    @property
    def about(self) -> str:
        """Where requests arrive."""
        signed = "signed " if self.signature else ""
        return f"{signed}requests to the webhook http://{self.listen}{self.path}"

    @property
    def guarantee(self) -> str:
        """What the answer means."""
        return "exactly once what was answered with 200; it is written down before"

    @property
    def secrets(self) -> Iterator[tuple[Path, str]]:
        """What senders sign with."""
        if self.signature is not None:
            yield ("signature", "secret"), self.signature.secret


class WebsocketSourceSpec(LiveSourceSpec):
    """Messages that a server sends over a websocket: each is a record."""

    unit: ClassVar[str] = "message"
    type: Literal["websocket"]
    url: WebsocketUrl
    """`wss://host/path`."""
    headers: Headers = Field(default={})
    """Of the request that opens the connection."""
    parameters: dict[str, Value] = Field(default={})
    """Of the query of the URL."""
    send: tuple[Value, ...] = ()
    """Messages to send after each connect, such as what is subscribed to."""
    max_bytes: int = Field(default=1_048_576, gt=0)
    """Of a message."""
    ping: Wait = 20_000
    """After how long a silence the server must show that it is there, in ms."""

    @property
    def about(self) -> str:
        """Who sends."""
        return f"messages of the websocket {self.url}"

    @property
    def guarantee(self) -> str:
        """A websocket acknowledges nothing."""
        return (
            "exactly once what is written down; what is sent while no connection is open, or not "
            "read yet when it breaks, never comes"
        )

    @property
    def secrets(self) -> Iterator[tuple[Path, str]]:
        """Those of headers, parameters and messages."""
        yield from secrets_among(("headers",), self.headers)
        yield from secrets_among(("parameters",), self.parameters)
        for place, message in enumerate(self.send):
            if message.secret is not None:
                yield ("send", place, "secret"), message.secret


class CursorSpec(Spec):
    """How a request says which records it has already."""

    field: JsonPath
    """Of each record; it never shrinks: a number, or a text such as a time."""
    parameter: Filled
    """Of the query: the greatest value that there was."""
    start: str | None = None
    """Sent before there was any."""


class HttpSourceSpec(LiveSourceSpec):
    """Records in the answers of a URL that is asked again and again."""

    unit: ClassVar[str] = "answer"
    type: Literal["http"]
    url: HttpUrl
    """`https://host/path`, without a login."""
    headers: Headers = Field(default={})
    """Of each request."""
    parameters: dict[str, Value] = Field(default={})
    """Of the query of the URL."""
    interval: Wait = 60_000
    """From one poll to the next, in ms."""
    records: JsonPath | None = None
    """Where in an answer they are: a list, or one object; None: the answer itself."""
    cursor: CursorSpec | None = None
    """How a poll asks only for what is new; None: records that stay as they are come once."""
    next: NextPage | None = None
    """Where in an answer the address of its next page is, or `header:Link`."""
    max_pages: int = Field(default=100, gt=0)
    """Of one poll."""
    max_bytes: int = Field(default=67_108_864, gt=0)
    """Of all answers of one poll."""
    timeout: Wait = 30_000
    """How long an answer is waited for, in ms."""

    @property
    def about(self) -> str:
        """What is asked."""
        since = "" if self.cursor is None else f", for what follows the last {self.cursor.field}"
        return f"records of {self.url}, asked every {format_duration(self.interval)}{since}"

    @property
    def guarantee(self) -> str:
        """The cursor is written with the records that it is made of."""
        if self.cursor is not None:
            return f"exactly once by {self.cursor.field}, which is written down with its records"
        return "exactly once what is written down; a record that stays as it is comes once"

    @property
    def secrets(self) -> Iterator[tuple[Path, str]]:
        """Those of headers and parameters."""
        yield from secrets_among(("headers",), self.headers)
        yield from secrets_among(("parameters",), self.parameters)


class MqttSourceSpec(LiveSourceSpec):
    """Messages of a broker of MQTT, acknowledged when they are written down."""

    unit: ClassVar[str] = "message"
    type: Literal["mqtt"]
    broker: Broker
    """`mqtts://host:8883`, or without TLS `mqtt://host:1883`."""
    topics: TopicFilters
    """Filters: `+` is any one level, `#` all that follow."""
    client_id: Filled | None = None
    """What the broker keeps messages for; None: `kaflow-<id of the pipeline>-<source>`."""
    user: Value | None = None
    """Who logs in."""
    password: SecretSpec | None = None
    """A secret of the configuration."""
    ca: Filled | None = None
    """A file with certificates of those who may sign the broker's; None: those of this system."""
    keepalive: Wait = 60_000
    """After how long a silence broker and client look for each other, in ms."""

    @property
    def about(self) -> str:
        """What is subscribed to."""
        return f"messages of {', '.join(self.topics)} at {self.broker}, with QoS 1"

    @property
    def guarantee(self) -> str:
        """That of QoS 1, and from then on ours."""
        return (
            "at least once from the broker, as QoS 1 is: acknowledged when it is written down; "
            "exactly once from there"
        )

    @property
    def secrets(self) -> Iterator[tuple[Path, str]]:
        """The login; a password without a user is not used."""
        if self.user is None:
            return
        if self.user.secret is not None:
            yield ("user", "secret"), self.user.secret
        if self.password is not None:
            yield ("password", "secret"), self.password.secret

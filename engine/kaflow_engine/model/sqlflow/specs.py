"""What a SQLFlow file says, as frozen data."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from kaflow_engine.model.files.shapes import Shape
from kaflow_engine.model.names import Filled, Topic
from kaflow_engine.model.spec import Spec
from kaflow_engine.model.sqlflow.sink_specs import KafkaAccessSpec, SinkSpec

INFERRED = ("handlers.InferredMemBatch", "handlers.InferredDiskBatch")
STRUCTURED = "handlers.StructuredBatch"


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


class CommandSpec(Spec):
    """SQL that runs once, before the first record."""

    name: str | None = None
    sql: Filled


class WindowSpec(Spec):
    """When rows of a table are complete, and where they go then."""

    time_column: Filled
    size_seconds: int | None = Field(default=None, gt=0)
    advance_seconds: int | None = Field(default=None, gt=0)
    """From the start of a window to that of the next one, of which a row then counts in several."""
    session_gap_seconds: int | None = Field(default=None, gt=0)
    """Instead of a size: a window lasts until nothing comes for longer."""
    grace_seconds: int = Field(default=0, ge=0)
    idle_close_seconds: int | None = Field(default=None, gt=0)
    late_rows: Literal["drop", "reemit", "dead_letter"] = "drop"
    poll_interval_seconds: int | None = None
    emit_sql: Filled | None = None
    sink: SinkSpec


class TumblingSpec(Spec):
    """SQL that collects closed windows, and SQL that deletes them."""

    collect_closed_windows_sql: Filled
    delete_closed_windows_sql: Filled
    poll_interval_seconds: int | None = None


class ManagerSpec(Spec):
    """Windows that SQL collects and deletes, and where they go."""

    tumbling_window: TumblingSpec
    sink: SinkSpec


class TableSpec(Spec):
    """A table that the handler fills."""

    name: Filled
    sql: Filled
    window: WindowSpec | None = None
    manager: ManagerSpec | None = None


class TablesSpec(Spec):
    """Tables that last from batch to batch."""

    sql: tuple[TableSpec, ...] = ()


class UdfSpec(Spec):
    """A Python function."""

    function_name: Filled
    import_path: Filled


class EventTimeSpec(Spec):
    """Where the time of a message is."""

    path: Filled
    format: Filled | None = None


class ValueSpec(Spec):
    """How the value of a message is read."""

    format: Literal["json", "json_schema", "avro"] = "json"


class KafkaSourceSpec(KafkaAccessSpec):
    """Topics."""

    group_id: Filled | None = None
    auto_offset_reset: Literal["earliest", "latest"] = "earliest"
    topics: tuple[Topic, ...]
    event_time: EventTimeSpec | None = None
    value: ValueSpec = ValueSpec()


class WebsocketSpec(Spec):
    """Messages of a server."""

    uri: Filled
    event_time: EventTimeSpec | None = None


class HmacSpec(Spec):
    """How requests are signed."""

    header: Filled
    sig_key: Filled = "sha256"
    secret: Filled


class WebhookSpec(Spec):
    """Requests of others."""

    addr: Filled = "0.0.0.0:8001"
    """Host and port."""
    signature_type: Literal["hmac"] | None = None
    hmac: HmacSpec | None = None
    max_body_bytes: int = Field(default=26_214_400, gt=0)
    max_connections: int = Field(default=64, gt=0)
    ack: Literal["on_receive", "after_flush"] = "on_receive"
    event_time: EventTimeSpec | None = None


class MqttSpec(Spec):
    """Messages of a broker of MQTT."""

    broker: Filled
    """`tcp://host:1883`, or `ssl://host:8883`."""
    topics: tuple[Filled, ...]
    client_id: Filled | None = None
    username: Filled | None = None
    password: Filled | None = None
    qos: Literal["1"] = "1"
    session_expiry_seconds: int | None = None
    receive_maximum: int | None = None
    event_time: EventTimeSpec | None = None


class SourceSpec(Spec):
    """Where messages come from."""

    type: Literal["kafka", "websocket", "webhook", "mqtt"]
    kafka: KafkaSourceSpec | None = None
    websocket: WebsocketSpec | None = None
    webhook: WebhookSpec | None = None
    mqtt: MqttSpec | None = None
    columns: dict[str, Filled] | None = None
    """Column name to DuckDB type; None: the first messages show them."""


class HandlerSpec(Spec):
    """The SQL over each batch."""

    type: Literal[
        "handlers.InferredMemBatch", "handlers.InferredDiskBatch", "handlers.StructuredBatch"
    ]
    sql: Filled
    sql_results_cache_dir: str | None = None
    table: Filled | None = None


class OnErrorSpec(Spec):
    """What becomes of messages that cannot be read, and of batches whose SQL fails."""

    policy: Annotated[Literal["RAISE", "IGNORE", "DLQ"], BeforeValidator(_upper)] = "RAISE"
    dlq: SinkSpec | None = None


class StateSpec(Spec):
    """Where what lasts is kept."""

    path: Filled


class RegistrySpec(Spec):
    """The schema registry."""

    url: Filled


class PipelinePart(Spec):
    """Source, handler and sink."""

    name: Filled | None = None
    description: str | None = None
    batch_size: int = Field(default=1, gt=0, le=1_000_000)
    flush_interval_seconds: int = Field(default=30, gt=0)
    drain_deadline_seconds: int | None = Field(default=None, gt=0)
    state: StateSpec | None = None
    schema_registry: RegistrySpec | None = None
    on_error: OnErrorSpec = OnErrorSpec()
    source: SourceSpec
    handler: HandlerSpec
    sink: SinkSpec


class SqlflowSpec(Spec):
    """A whole file."""

    commands: tuple[CommandSpec, ...] = ()
    tables: TablesSpec = TablesSpec()
    udfs: tuple[UdfSpec, ...] = ()
    pipeline: PipelinePart


SHAPE = Shape(noun="key", later={})

"""The configuration: what is the same for every pipeline of a deployment."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.files.variables import AUTHORS
from kaflow_engine.model.names import Filled, refuse, split_names
from kaflow_engine.model.outputs.cluster_specs import KafkaConfig, Url
from kaflow_engine.model.outputs.connection_specs import (
    ClickHouseConfig,
    CommandConfig,
    CommandConnection,
    ConnectionSpec,
    IcebergConfig,
    MySQLConfig,
    PluginConfig,
    PostgresConfig,
    SqlConfig,
    WebhookConfig,
)
from kaflow_engine.model.plugin_options import PluginName
from kaflow_engine.model.sources.topic_specs import TopicSchemaSpec
from kaflow_engine.model.spec import Path, Spec
from kaflow_engine.model.specs import PipelineSpec

_VARIABLE = re.compile(r"[A-Za-z_*][A-Za-z0-9_*]*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        hint = "write names such as REGION, and patterns such as TEAM_*"
        raise refuse("{value} is not the name of a variable", hint)
    return name


def _module(name: str) -> str:
    if not _MODULE.fullmatch(name) and not name.endswith(".py"):
        hint = "write the name of one, such as shop.functions, or the path of a file ending in .py"
        raise refuse("{value} is not a module", hint)
    return name


def _positive(milliseconds: int) -> int:
    if milliseconds <= 0:
        raise refuse("must be longer than 0")
    return milliseconds


def _folder(text: str) -> str:
    if "://" in text:
        raise refuse(
            "{value} is not a folder of this machine",
            "write a path; an object store that is mounted there must be able to rename files",
        )
    return text


def _level(value: object) -> object:
    if not isinstance(value, str):
        return value
    return {"warn": "warning"}.get(value.lower(), value.lower())


Level = Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_level)]


class S3Config(Spec):
    """An S3-compatible store for snapshots."""

    enabled: bool = False
    bucket: Filled | None = None
    prefix: str = ""
    region: Filled | None = None
    endpoint: Url | None = None
    access_key: Filled | None = Field(default=None, alias="accessKey", repr=False)
    secret_key: Filled | None = Field(default=None, alias="secretKey", repr=False)


class CheckpointConfig(Spec):
    """Snapshots of the state."""

    enabled: bool = True
    interval: Annotated[Duration, AfterValidator(_positive)] = 300_000
    s3: S3Config = S3Config()


class RocksdbConfig(Spec):
    """Where state is kept."""

    path: Filled = ".kaflow/state"
    local: Filled | None = None
    """Where executors of a cluster keep their copies, on their own disks; None: with Spark's
    temporary files. Under a local master: in `path`."""
    checkpoint: CheckpointConfig = CheckpointConfig()


class StateConfig(Spec):
    """State of all pipelines."""

    ttl: Duration = 3_600_000
    """TTL of event topics that nothing else sets."""
    rocksdb: RocksdbConfig = RocksdbConfig()


class LoggingConfig(Spec):
    """What is logged, and how."""

    level: Level = "info"
    format: Literal["text", "json"] = "text"
    levels: dict[str, Level] = Field(default={})
    """Of single loggers, such as `kaflow.kafka`."""


class HttpConfig(Spec):
    """The port where health, status and metrics are read."""

    host: Filled = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65_535)
    """0: any free port. Where it is taken the next free one, which is logged."""
    token: Filled | None = Field(default=None, repr=False)
    """What `/status`, `/metrics` and `/preview` ask for; a host that others reach needs one."""
    token_file: Filled | None = None
    """The file that holds the token, instead of `token`."""


class OtlpConfig(Spec):
    """Where traces and metrics are sent by OpenTelemetry's protocol."""

    endpoint: Url | None = Field(default=None, repr=False)
    """None: `OTEL_EXPORTER_OTLP_ENDPOINT` decides, and without it nothing is sent."""
    protocol: Literal["grpc", "http"] = "grpc"
    headers: dict[str, str] = Field(default={}, repr=False)
    interval: Annotated[Duration, AfterValidator(_positive)] = 30_000
    """Between two exports of metrics."""


class SparkConfig(Spec):
    """The Spark session."""

    master: Filled = "local[2]"
    conf: dict[str, str] = Field(default={}, repr=False)


class Config(Spec):
    """The whole configuration; durations in ms."""

    kafka: KafkaConfig = KafkaConfig()
    state: StateConfig = StateConfig()
    logging: LoggingConfig = LoggingConfig()
    http: HttpConfig = HttpConfig()
    otlp: OtlpConfig = OtlpConfig()
    mysql: MySQLConfig = MySQLConfig()
    postgres: PostgresConfig = PostgresConfig()
    clickhouse: ClickHouseConfig = ClickHouseConfig()
    iceberg: IcebergConfig = IcebergConfig()
    webhook: WebhookConfig = WebhookConfig()
    command: CommandConfig = CommandConfig()
    secrets: dict[str, Filled] = Field(default={}, repr=False)
    """By names, which pipelines use."""
    plugins: dict[str, PluginConfig] = Field(default={})
    """By their names."""
    spark: SparkConfig = SparkConfig()
    sql: SqlConfig = SqlConfig()
    functions: Annotated[
        tuple[Annotated[str, AfterValidator(_module)], ...], BeforeValidator(split_names)
    ] = ()
    """Modules, or Python files, whose functions queries may call. Pipelines cannot name any."""
    preprocessors: Annotated[tuple[PluginName, ...], BeforeValidator(split_names)] = ()
    """Plugins that rewrite the text of pipeline files, one after the other, before it is parsed."""
    topics: dict[str, TopicSchemaSpec] = Field(default={})
    """What processors know of topics beside what their own file says."""
    vars: dict[str, str] = Field(default={})
    """What `var` finds in dbt-style models."""
    env: Annotated[
        tuple[Annotated[str, AfterValidator(_variable)], ...], BeforeValidator(split_names)
    ] = AUTHORS
    """Variables of the environment that pipelines, models and cases may expand; `*` stands for any
    text. The configuration itself may expand all."""
    max_records: int | None = Field(default=None, gt=0)
    """Most records of one micro-batch; None: 200,000, or 400,000 where rows are grouped, and
    without the library that reads topics."""
    max_batch_bytes: int | None = Field(default=None, gt=0)
    """Most bytes of one micro-batch, as far as they can be told before it is read; None: 256 MiB,
    or a KiB for each of `max_records` where that is more."""
    batch_interval: Duration = 0
    """How long a stream that keeps up lets records gather after a batch; 0: what has come is the
    next batch at once. A table has an `interval` of its own besides."""
    warehouse: Annotated[str, AfterValidator(_folder)] = "warehouse"
    """The folder of tables, and of folders of files."""
    drain_deadline: Duration = 60_000
    retry_deadline: Duration = 300_000
    """How long brokers and registry may be away before a run gives up."""
    max_clock_skew: Annotated[Duration, AfterValidator(_positive)] = 300_000
    """By how much the clocks of this machine and of the brokers may differ."""
    origins: Mapping[Path, str] = Field(default={}, exclude=True, repr=False)
    """Where each value that is not a default comes from; not a key of the file."""
    file: str | None = Field(default=None, exclude=True)
    """The configuration file that was read; not a key of it."""

    @property
    def most_bytes(self) -> int:
        """Most bytes of one micro-batch."""
        return self.max_batch_bytes or max(256 * 2**20, (self.max_records or 0) * 2**10)

    @property
    def connections(self) -> Mapping[str, Mapping[str, ConnectionSpec]]:
        """Connections by the kind of sink that needs them, and by name."""
        return {
            "mysql": self.mysql.connections,
            "postgres": self.postgres.connections,
            "clickhouse": self.clickhouse.connections,
            "iceberg": self.iceberg.connections,
            "webhook": self.webhook.connections,
            "command": self._commands,
        }

    @property
    def _commands(self) -> Mapping[str, CommandConnection]:
        known, more = self.command.connections, self.sql.write
        if not more:
            return known
        own = known.get("default", CommandConnection())
        return {**known, "default": own.model_copy(update={"folders": (*own.folders, *more)})}

    def origin(self, *path: str) -> str:
        """Return `default`, `file:line`, `environment KAFLOW__…` or `command line`."""
        for end in range(len(path), 0, -1):
            if found := self.origins.get(path[:end]):
                return found
        return "default"


def topic_format(spec: PipelineSpec, config: Config, topic: str) -> str:
    """Return the format of an input topic: its own, or the configuration's."""
    return spec.topic(topic).format or ("avro" if config.kafka.use_avro else "json")

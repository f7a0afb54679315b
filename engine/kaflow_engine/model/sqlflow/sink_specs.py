"""What a SQLFlow file says of the places that rows go to."""

from typing import Literal

from kaflow_engine.model.names import Filled, Topic
from kaflow_engine.model.spec import Spec


class SslSpec(Spec):
    """Certificates."""

    ca_location: Filled | None = None
    certificate_location: Filled | None = None
    key_location: Filled | None = None
    key_password: Filled | None = None
    endpoint_identification_algorithm: str | None = None


class SaslSpec(Spec):
    """Who logs in."""

    mechanism: Filled
    username: Filled | None = None
    password: Filled | None = None


class KafkaAccessSpec(Spec):
    """Where brokers are, and how they are reached."""

    brokers: tuple[Filled, ...]
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] | None = None
    ssl: SslSpec | None = None
    sasl: SaslSpec | None = None

    @property
    def properties(self) -> dict[str, str]:
        """The settings of Kafka's clients."""
        ssl, sasl = self.ssl or SslSpec(), self.sasl
        found = {
            "security.protocol": self.security_protocol,
            "ssl.ca.location": ssl.ca_location,
            "ssl.certificate.location": ssl.certificate_location,
            "ssl.key.location": ssl.key_location,
            "ssl.key.password": ssl.key_password,
            "ssl.endpoint.identification.algorithm": ssl.endpoint_identification_algorithm,
            "sasl.mechanism": sasl.mechanism if sasl else None,
            "sasl.username": sasl.username if sasl else None,
            "sasl.password": sasl.password if sasl else None,
        }
        return {name: value for name, value in found.items() if value is not None}


class KafkaSinkSpec(KafkaAccessSpec):
    """A topic."""

    topic: Topic
    key: Filled | None = None


class SubstitutionSpec(Spec):
    """A text of the SQL for which another one stands in each batch."""

    var: Filled
    type: Literal["uuid4"]


class SqlCommandSpec(Spec):
    """Statements over the rows of a batch."""

    sql: Filled
    substitutions: tuple[SubstitutionSpec, ...] = ()


class IcebergSpec(Spec):
    """An Iceberg table."""

    catalog_name: Filled
    table_name: Filled


class ClickHouseSpec(Spec):
    """A table of ClickHouse."""

    dsn: Filled
    table: Filled


class PostgresSpec(Spec):
    """A table of Postgres."""

    dsn: Filled
    table: Filled
    mode: Literal["append", "upsert"] = "append"
    key: tuple[Filled, ...] = ()


class FormatSpec(Spec):
    """A form of rows that SQLFlow reads and does not use."""

    type: Literal["parquet"]


class RetrySpec(Spec):
    """How often a write is tried again."""

    max_attempts: int | None = None
    initial_backoff_ms: int | None = None
    max_backoff_ms: int | None = None
    deadline_seconds: int | None = None


class SinkSpec(Spec):
    """A place that rows go to."""

    type: Literal["kafka", "console", "noop", "sqlcommand", "iceberg", "clickhouse", "postgres"] = (
        "console"
    )
    format: FormatSpec | None = None
    retry: RetrySpec | None = None
    kafka: KafkaSinkSpec | None = None
    console: dict[str, str] | None = None
    sqlcommand: SqlCommandSpec | None = None
    iceberg: IcebergSpec | None = None
    clickhouse: ClickHouseSpec | None = None
    postgres: PostgresSpec | None = None

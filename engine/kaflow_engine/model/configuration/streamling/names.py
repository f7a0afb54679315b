"""The names of Streamling's settings, what each is where nothing is said, and which do nothing."""

from collections.abc import Mapping

_KAFKA: Mapping[str, str] = {
    "brokers": "localhost:9092",
    "security_protocol": "plaintext",
    "sasl_mechanism": "",
    "sasl_username": "",
    "sasl_password": "",
    "schema_registry_url": "http://localhost:18081",
    "schema_registry_username": "",
    "schema_registry_password": "",
    "client_id": "",
}
_CLICKHOUSE: Mapping[str, str] = {
    "url": "http://localhost:8123",
    "user": "default",
    "password": "",
    "database": "default",
}

KNOWN: Mapping[tuple[str, ...], str] = {
    **{(s, name): text for s in ("kafka_source", "kafka_sink") for name, text in _KAFKA.items()},
    ("kafka_source", "consumer_group_id"): "",
    **{
        (section, name): text
        for section in ("clickhouse_source", "clickhouse_sink")
        for name, text in _CLICKHOUSE.items()
    },
    ("clickhouse_source", "page_size"): "10000000",
    ("clickhouse_sink", "compression"): "none",
    ("clickhouse_sink", "compression_level"): "6",
    ("postgres_sink", "host"): "127.0.0.1",
    ("postgres_sink", "port"): "5432",
    ("postgres_sink", "user"): "graph-node",
    ("postgres_sink", "pass"): "",
    ("postgres_sink", "db"): "postgres",
    ("postgres_sink", "sslmode"): "disable",
    ("external_http_handler", "trigger_max_count"): "2000",
    ("external_http_handler", "buffer_size"): "25",
    ("external_http_handler", "operator_timeout_sec"): "300",
    ("job_mode",): "false",
    ("pipeline_definition_location",): "",
    ("log_format",): "",
    ("log_level",): "",
    ("open_telemetry_metrics", "ingestion_endpoint"): "",
    ("open_telemetry_metrics", "endpoint_protocol"): "",
    ("open_telemetry_metrics", "batch_interval_secs"): "",
    ("open_telemetry_metrics", "global_tags"): "",
    ("application_id",): "",
    ("checkpoint_interval_sec",): "5",
    ("enforce_primary_keys",): "false",
    ("internal_buffer_size",): "10",
    ("plugin", "channel_capacity"): "50",
    ("plugin", "path"): "",
    ("plugin", "preprocessor_ids"): "",
    ("plugin", "side_output_ids"): "",
    ("print_sink", "sample_every"): "1",
    ("record_batch_interval_ms",): "100",
    ("record_batch_size",): "1000",
    ("state_backend", "backend_type"): "InMemory",
}
"""By name: what Streamling has unless it is said; empty: nothing."""

NUMBERS = (
    *("batch_interval_secs", "buffer_size", "operator_timeout_sec", "page_size", "port"),
    *("sample_every", "trigger_max_count"),
)
"""Last parts of the names of settings that are whole numbers."""

BACKENDS = ("InMemory", "Postgres", "Sqlite")
"""Where positions are kept."""

OWN_NAMESPACE = "streamling"
"""The namespace of plugins whose ids have none."""

SECTIONS = frozenset(name[0] for name in KNOWN)
TELLING = SECTIONS - {"job_mode", "log_format", "log_level", "plugin"}
"""Those that files of other programs hardly have."""

NOT_HERE: Mapping[tuple[str, ...], str] = {
    (
        "application_id",
    ): "a label of metrics, and the namespace of positions; a state is called as its file",
    ("checkpoint_interval_sec",): "each batch is committed when all its sinks have it",
    ("clickhouse_sink", "compression"): "requests are sent as they are",
    ("clickhouse_sink", "compression_level"): "requests are sent as they are",
    ("enforce_primary_keys",): "keys are enforced where a sink writes by them",
    ("internal_buffer_size",): "batches are those of the run: max_records, max_batch_bytes",
    (
        "open_telemetry_metrics",
        "global_tags",
    ): "labels of metrics of nodes; OTEL_RESOURCE_ATTRIBUTES of all",
    ("plugin", "channel_capacity"): "plugins are called, and have no channels",
    ("plugin", "path"): "packages there count as installed",
    ("plugin", "side_output_ids"): "see the rows of each source",
    ("print_sink", "sample_every"): "of so many rows one is printed",
    ("record_batch_interval_ms",): "batches are those of the run: batch_interval",
    ("record_batch_size",): "batches are those of the run: max_records, max_batch_bytes",
    (
        "state_backend",
        "backend_type",
    ): "state is in the state directory; positions are written there, too",
    (
        "clickhouse_source",
        "page_size",
    ): "rows of a page; beyond what one may have, they follow its time",
    ("external_http_handler", "trigger_max_count"): "rows of a request, unless batch_size says it",
    ("external_http_handler", "buffer_size"): "requests of a task at once",
    ("external_http_handler", "operator_timeout_sec"): "how long an answer is waited for",
    ("job_mode",): "sources end with their tables",
    ("pipeline_definition_location",): "the file, where a command names none",
}
"""Settings that are no key of our configuration, and what becomes of each."""


def plugin_id(text: str) -> str:
    """Return the name of a plugin as packages offer it: an id alone has a namespace here, too.

    >>> plugin_id("print_sink"), plugin_id("acme.orders")
    ('streamling.print_sink', 'acme.orders')
    """
    return text if "." in text else f"{OWN_NAMESPACE}.{text}"


def is_known(name: tuple[str, ...]) -> bool:
    """Tell whether there is such a setting; plugins have options of any name."""
    of_plugins = name[:1] == ("plugin",) and len(name) > 1 and name[1].endswith("_options")
    return name in KNOWN or of_plugins

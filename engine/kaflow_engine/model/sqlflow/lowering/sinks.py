"""Where the rows of a file go, in the words of a pipeline file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from kaflow_engine.errors import Location
from kaflow_engine.model.brought.settings import Setting
from kaflow_engine.model.files.tree import Entry
from kaflow_engine.model.outputs.connection_specs import ClickHouseConnection, PostgresConnection
from kaflow_engine.model.spec import Path, Spec
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, entry, mapping, sql_entry
from kaflow_engine.model.sqlflow.lowering.sources import kafka_access, pipeline_name
from kaflow_engine.model.sqlflow.sink_specs import SinkSpec

BATCH = "sqlflow_sink_batch"
"""What statements call the rows of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """What is written."""

    output: Entry
    settings: tuple[Setting, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Lowering:
    said: Said
    spec: SinkSpec
    path: Path
    brokers: tuple[str, ...] | None
    """Of the source; none: they are not known. None: it is not Kafka."""
    mistakes: Mistakes
    settings: list[Setting]

    def at(self, *keys: str) -> Location:
        return self.said.at(*self.path, *keys)


def lower_sink(
    said: Said, spec: SinkSpec, path: Path, brokers: tuple[str, ...] | None, mistakes: Mistakes
) -> Sink:
    """Return what an output of a pipeline file says for a sink.

    Args:
        said: The file.
        spec: The sink.
        path: Where it stands in the file.
        brokers: Those of the source, none where they are wrong; None: it is not Kafka.
        mistakes: What is wrong is added.
    """
    one = _Lowering(
        said=said, spec=spec, path=path, brokers=brokers, mistakes=mistakes, settings=[]
    )
    at = one.at()
    kind = spec.type
    if kind not in ("console", "noop") and getattr(spec, kind) is None:
        key = ".".join(str(step) for step in (*path, kind) if isinstance(step, str))
        mistakes.add(f"'{key}' is required", one.at("type"), f"say under {kind}: what is written")
        return Sink(output=entry("output", {"type": "blackhole"}, at))
    entries = _KINDS[kind](one)
    return Sink(output=entry("output", mapping(at, *entries), at), settings=tuple(one.settings))


def _console(one: _Lowering) -> list[Entry]:
    return [entry("type", "console", one.at()), entry("lines", "rows", one.at())]


def _noop(one: _Lowering) -> list[Entry]:
    return [entry("type", "blackhole", one.at())]


def _kafka(one: _Lowering) -> list[Entry]:
    kafka = one.spec.kafka
    assert kafka is not None
    path = (*one.path, "kafka")
    if one.brokers is None:
        one.settings += kafka_access(one.said, kafka, path, one.mistakes)
    elif one.brokers and set(one.brokers) != set(kafka.brokers):
        one.mistakes.add(
            "the rows go to other brokers than those that the messages come from",
            one.at("kafka", "brokers"),
            "write the brokers of the source: a pipeline has one cluster; another one can be fed "
            "by a pipeline of its own, or by MirrorMaker",
        )
    found = [
        entry("topic", kafka.topic, one.at("kafka", "topic")),
        entry("format", "json_spaced", one.at("kafka")),
    ]
    if kafka.key is not None:
        found.append(entry("key", kafka.key, one.at("kafka", "key")))
    return found


def _iceberg(one: _Lowering) -> list[Entry]:
    iceberg = one.spec.iceberg
    assert iceberg is not None
    return [
        entry("type", "iceberg", one.at()),
        entry("connection", iceberg.catalog_name, one.at("iceberg", "catalog_name")),
        entry("table", iceberg.table_name, one.at("iceberg", "table_name")),
    ]


def _clickhouse(one: _Lowering) -> list[Entry]:
    clickhouse = one.spec.clickhouse
    assert clickhouse is not None
    scheme, _, rest = clickhouse.dsn.partition("://")
    web = {"clickhouse": "http", "clickhouses": "https", "http": "http", "https": "https"}
    if scheme not in web:
        one.mistakes.add(
            f"ClickHouse is not reached by {scheme}://",
            one.at("clickhouse", "dsn"),
            "write clickhouse://user:password@host:8123/database, or clickhouses:// with port 8443",
        )
        return _noop(one)
    connection = _connect(
        one,
        "clickhouse",
        lambda: ClickHouseConnection.model_validate({"url": f"{web[scheme]}://{rest}"}),
    )
    return [
        entry("type", "clickhouse", one.at()),
        entry("connection", connection, one.at("clickhouse", "dsn")),
        entry("table", clickhouse.table, one.at("clickhouse", "table")),
    ]


def _postgres(one: _Lowering) -> list[Entry]:
    postgres = one.spec.postgres
    assert postgres is not None
    connection = _connect(
        one, "postgres", lambda: PostgresConnection.model_validate({"url": postgres.dsn})
    )
    found = [
        entry("type", "postgres", one.at()),
        entry("connection", connection, one.at("postgres", "dsn")),
        entry("table", postgres.table, one.at("postgres", "table")),
        entry("mode", postgres.mode, one.at("postgres", "mode")),
    ]
    if len(postgres.key) > 1:
        one.mistakes.add(
            "rows of Postgres have one key column",
            one.at("postgres", "key"),
            "select the parts of the key as one column, and name that",
        )
    if postgres.mode == "upsert" and not postgres.key:
        one.mistakes.add(
            "rows that replace each other need a key",
            one.at("postgres", "mode"),
            "write key: [<column>]",
        )
    if postgres.key:
        found.append(entry("key", postgres.key[0], one.at("postgres", "key")))
    return found


def _command(one: _Lowering) -> list[Entry]:
    command = one.spec.sqlcommand
    assert command is not None
    written = one.said.sql(*one.path, "sqlcommand", "sql")
    text = written.text.replace(BATCH, "batch")
    for substitution in command.substitutions:
        text = text.replace(substitution.var, "{batch}")
    return [
        entry("type", "command", one.at()),
        sql_entry("sql", text, written.at),
    ]


_KINDS: Mapping[str, Callable[[_Lowering], list[Entry]]] = {
    "console": _console,
    "noop": _noop,
    "kafka": _kafka,
    "iceberg": _iceberg,
    "clickhouse": _clickhouse,
    "postgres": _postgres,
    "sqlcommand": _command,
}


def _connect(one: _Lowering, kind: str, make: Callable[[], Spec]) -> str:
    """Bring a connection, and return its name."""
    name = f"{pipeline_name(one.said)}.{'.'.join(str(step) for step in one.path)}"
    at = one.at(kind, "dsn")
    try:
        made = make()
    except ValidationError as error:
        context = error.errors()[0].get("ctx", {})
        message = f"'{kind}.dsn' {context.get('message', 'cannot be used')}"
        one.mistakes.add(message, at, str(context.get("hint", "")))
        return name
    one.settings.append(Setting(path=(kind, "connections", name), value=made, at=at))
    return name

"""Where the rows of a file go, in the words of a pipeline file."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kaflow_engine.errors import Location
from kaflow_engine.model.brought.settings import Opening, Setting
from kaflow_engine.model.files.tree import Entry
from kaflow_engine.model.outputs.connection_specs import ClickHouseConnection, PostgresConnection
from kaflow_engine.model.spec import Path as KeyPath
from kaflow_engine.model.spec import Spec
from kaflow_engine.model.sqlflow.lowering.buckets.copied import Copied, copied
from kaflow_engine.model.sqlflow.lowering.clusters import Clusters
from kaflow_engine.model.sqlflow.lowering.parts import Part
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, entry, sql_entry
from kaflow_engine.model.sqlflow.lowering.sources import pipeline_name
from kaflow_engine.model.sqlflow.sink_specs import PostgresSpec, SinkSpec

BATCH = "sqlflow_sink_batch"
"""What statements call the rows of a batch."""
_COPIED = re.compile(r"\bCOPY\b[^;]*?\bTO\s+'(?P<path>[^']+)'", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """What is written."""

    at: Location
    keys: tuple[Entry, ...]
    """Of an output."""
    settings: tuple[Setting, ...] = ()
    openings: tuple[Opening, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Lowering:
    said: Said
    spec: SinkSpec
    path: KeyPath
    name: str
    """What the output is called among others."""
    clusters: Clusters
    mistakes: Mistakes
    settings: list[Setting]
    openings: list[Opening]

    def at(self, *keys: str) -> Location:
        return self.said.at(*self.path, *keys)


def lower_sink(said: Said, part: Part, clusters: Clusters, mistakes: Mistakes) -> Sink:
    """Return what an output of a pipeline file says for a sink.

    Args:
        said: The file.
        part: Whose rows go there.
        clusters: Those of the source, and of other sinks.
        mistakes: What is wrong is added.
    """
    spec, path = part.sink, part.path
    one = _Lowering(
        said=said,
        spec=spec,
        path=path,
        name=part.name,
        clusters=clusters,
        mistakes=mistakes,
        settings=[],
        openings=[],
    )
    at = one.at()
    kind = spec.type
    if kind not in ("console", "noop") and getattr(spec, kind) is None:
        key = ".".join(str(step) for step in (*path, kind) if isinstance(step, str))
        mistakes.add(f"'{key}' is required", one.at("type"), f"say under {kind}: what is written")
        return Sink(at=at, keys=tuple(_noop(one)))
    keys = tuple(_KINDS[kind](one))
    return Sink(at=at, keys=keys, settings=tuple(one.settings), openings=tuple(one.openings))


def _console(one: _Lowering) -> list[Entry]:
    return [*_named(one, "console"), entry("lines", "rows", one.at())]


def _noop(one: _Lowering) -> list[Entry]:
    return _named(one, "blackhole")


def _named(one: _Lowering, kind: str) -> list[Entry]:
    """Return what an output says that is known by a name alone."""
    return [entry("type", kind, one.at()), entry("name", one.name, one.at())]


def _kafka(one: _Lowering) -> list[Entry]:
    kafka = one.spec.kafka
    assert kafka is not None
    found = [
        entry("topic", kafka.topic, one.at("kafka", "topic")),
        entry("format", "json_spaced", one.at("kafka")),
    ]
    place = "sink" if one.path[0] == "pipeline" else one.name
    cluster = one.clusters.of(kafka, (*one.path, "kafka"), place)
    if cluster:
        found.append(entry("cluster", cluster, one.at("kafka", "brokers")))
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
    connection, settings = _connect(
        one.said,
        "clickhouse",
        one.path,
        lambda: ClickHouseConnection.model_validate({"url": f"{web[scheme]}://{rest}"}),
        one.mistakes,
    )
    one.settings += settings
    return [
        entry("type", "clickhouse", one.at()),
        entry("connection", connection, one.at("clickhouse", "dsn")),
        entry("table", clickhouse.table, one.at("clickhouse", "table")),
    ]


def _postgres(one: _Lowering) -> list[Entry]:
    postgres = one.spec.postgres
    assert postgres is not None
    connection, settings = connect_postgres(one.said, postgres, one.path, one.mistakes)
    one.settings += settings
    found = [
        entry("type", "postgres", one.at()),
        entry("connection", connection, one.at("postgres", "dsn")),
        entry("table", postgres.table, one.at("postgres", "table")),
        entry("mode", postgres.mode, one.at("postgres", "mode")),
    ]
    if postgres.mode == "upsert" and not postgres.key:
        one.mistakes.add(
            "rows that replace each other need a key",
            one.at("postgres", "mode"),
            "write key: [<column>]",
        )
    if postgres.key:
        found.append(entry("key", list(postgres.key), one.at("postgres", "key")))
    return found


def _command(one: _Lowering) -> list[Entry]:
    command = one.spec.sqlcommand
    assert command is not None
    written = one.said.sql(*one.path, "sqlcommand", "sql")
    variables = [substitution.var for substitution in command.substitutions]
    before = len(one.mistakes.found)
    files = copied(written, BATCH, variables, one.mistakes)
    if files is not None:
        return _files(files, written.at)
    if len(one.mistakes.found) > before:
        return _noop(one)
    text = written.text.replace(BATCH, "batch")
    for substitution in command.substitutions:
        text = text.replace(substitution.var, "{batch}")
    for target in _COPIED.finditer(text):
        folder = str(Path(target["path"].partition("{batch}")[0] + "x").parent.absolute())
        at = written.line(text.count("\n", 0, target.start("path")) + 1)
        one.openings.append(Opening(kind="write", at=at, path=folder))
    return [
        *_named(one, "command"),
        sql_entry("sql", text, written.at),
    ]


def _files(files: Copied, at: Location) -> list[Entry]:
    parted = [entry("partition_by", list(files.partition_by), at)] if files.partition_by else []
    return [
        entry("type", "files", at),
        entry("folder", files.folder, at),
        entry("format", files.format, at),
        *parted,
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


def connect_postgres(
    said: Said, spec: PostgresSpec, path: KeyPath, mistakes: Mistakes
) -> tuple[str, tuple[Setting, ...]]:
    """Return the name of the connection that a table is reached by, and the setting that it is.

    Args:
        said: The file.
        spec: The table.
        path: Where the sink stands.
        mistakes: What is wrong is added.
    """
    return _connect(
        said,
        "postgres",
        path,
        lambda: PostgresConnection.model_validate({"url": spec.dsn}),
        mistakes,
    )


def _connect(
    said: Said, kind: str, path: KeyPath, make: Callable[[], Spec], mistakes: Mistakes
) -> tuple[str, tuple[Setting, ...]]:
    """Return what a connection is called, and what brings it."""
    name = f"{pipeline_name(said)}.{'.'.join(str(step) for step in path)}"
    at = said.at(*path, kind, "dsn")
    try:
        made = make()
    except ValidationError as error:
        context = error.errors()[0].get("ctx", {})
        message = f"'{kind}.dsn' {context.get('message', 'cannot be used')}"
        mistakes.add(message, at, str(context.get("hint", "")))
        return name, ()
    return name, (Setting(path=(kind, "connections", name), value=made, at=at),)

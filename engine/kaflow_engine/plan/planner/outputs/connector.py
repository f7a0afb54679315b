"""Outputs whose kind of sink a file names: what each kind takes, and what it cannot give."""

from collections.abc import Iterator, Sequence

from kaflow_engine.connectors.plugins import plugin
from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.connected_specs import ConnectedSinkSpec, ConnectedTableSpec
from kaflow_engine.model.outputs.output_specs import SinkSpec, Write
from kaflow_engine.model.outputs.sink_specs import (
    CommandSpec,
    FilesSpec,
    PluginSpec,
)
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.mistakes import placed
from kaflow_engine.plan.planner.outputs.command import without_operation, wrong_statements
from kaflow_engine.plan.planner.outputs.output import BranchParts
from kaflow_engine.plugins.options import wrong_options

_INSTEAD = {
    "files": "write them to a topic or into a table of a database; or group by a window, such as "
    "tumble(INTERVAL 5 MINUTE), with emission: {type: final}: its rows stay",
}
"""Kind of sink → where rows can go that change."""


def wrong_sinks(spec: PipelineSpec, config: Config) -> Iterator[ModelError]:
    """Yield an error for what an output asks of a kind of sink that cannot give it.

    Args:
        spec: What the author wrote.
        config: For connections.

    Raises:
        ModelError: A plugin is not installed, or cannot be loaded.
    """
    _require_plugins(spec)
    first: dict[str, Write] = {}
    for write in spec.writes:
        if write.sink is None:
            continue
        if isinstance(write.sink, PluginSpec):
            yield from _wrong_options(spec, write, write.sink)
        before = first.setdefault(write.target, write)
        if before is not write:
            yield ModelError(
                f"two outputs write '{write.target}', the other one at {spec.place(*before.at)}",
                spec.place(*write.at),
                "give one of them another name: a pipeline knows its outputs by their names",
            )
        yield from _more_than_it_gives(spec, write, write.sink)
        if isinstance(write.sink, ConnectedSinkSpec) and not write.sink.is_reached:
            yield from _wrong_connection(spec, config, write, write.sink)
        if isinstance(write.sink, ConnectedTableSpec):
            yield from _wrong_table(spec, write, write.sink)
        if isinstance(write.sink, FilesSpec):
            yield from _wrong_folder(spec, write, write.sink)
        if isinstance(write.sink, CommandSpec):
            yield from wrong_statements(spec, write, write.sink)


def _more_than_it_gives(spec: PipelineSpec, write: Write, sink: SinkSpec) -> Iterator[ModelError]:
    promised = sink_kind(sink.kind).capabilities(spec.delivery, sink.settings)
    if len(sink.key_columns) > 1 and not promised.listed_keys:
        yield ModelError(
            f"the key of '{sink.kind}' is one column, and {len(sink.key_columns)} are named",
            spec.place(*write.at, "key"),
            "select one that puts them together, such as CAST(a AS VARCHAR) || ':' || b AS id, and "
            "name it; the key of a topic, or of a table of postgres or clickhouse, may be several",
        )
    asked = "delivery" in spec.model_fields_set and spec.delivery == "exactly_once"
    if asked and promised.guarantee == "at_least_once":
        yield ModelError(
            f"'{sink.kind}' cannot deliver exactly once: {promised.reason}",
            spec.place("delivery"),
            "remove delivery: each output then gives what it can, and topics exactly once",
        )
    if write.checks and not promised.readable:
        yield ModelError(
            f"checks do not work with '{sink.kind}': they read what was written",
            spec.place(*write.checks_at),
            "write the rows to a topic, a table, a database, Iceberg or files, too, and check that "
            "output",
        )


def _require_plugins(spec: PipelineSpec) -> None:
    for write in spec.writes:
        if isinstance(write.sink, PluginSpec):
            with placed(spec.place(*write.at, "type")):
                plugin(write.sink.kind)
        if write.output.topic is not None:
            with placed(spec.place(*write.at, "format")):
                format_of(write.output.format)


def _wrong_options(spec: PipelineSpec, write: Write, sink: PluginSpec) -> Iterator[ModelError]:
    places = {name: spec.place(*write.at, "options", name) for name in ("", *sink.options)}
    yield from wrong_options(sink.kind, plugin(sink.kind).options, sink.options, places)


def _wrong_connection(
    spec: PipelineSpec, config: Config, write: Write, sink: ConnectedSinkSpec
) -> Iterator[ModelError]:
    kind, name, known = sink.kind, sink.connection, config.connections[sink.kind]
    if name not in known:
        error = UnknownName("connection", name, known, spec.place(*write.at, "connection"))
        error.hint = error.hint or (
            f"add {kind}: {{connections: {{{name}: {{{sink.needs}}}}}}} to the configuration"
        )
        yield error


def _wrong_table(
    spec: PipelineSpec, write: Write, sink: ConnectedTableSpec
) -> Iterator[ModelError]:
    if sink.replaces and sink.key is None:
        yield ModelError(
            "rows that replace each other need a key",
            spec.place(*write.at, "mode"),
            "write key: <column>; the last row of a key stays",
        )
    elif sink.replaces and not spec.ordered:
        yield ModelError(
            "'mode: upsert' needs the rows of a key in order",
            spec.place(*write.at, "mode"),
            "remove ordered: false",
        )


def _wrong_folder(spec: PipelineSpec, write: Write, sink: FilesSpec) -> Iterator[ModelError]:
    for other in spec.writes:
        if other.output.table == sink.folder:
            yield ModelError(
                f"folder '{sink.folder}' is that of a table, at {spec.place(*other.at)}",
                spec.place(*write.at, "folder"),
                "give one of them another name: only commits say which files a table has",
            )
    seen: set[str] = set()
    for name in sink.partition_by:
        if name in seen:
            yield ModelError(
                f"'partition_by' names '{name}' twice",
                spec.place(*write.at, "partition_by"),
                "remove one of them",
            )
        seen.add(name)


def wrong_rows(spec: PipelineSpec, branch: BranchParts, sink: SinkSpec) -> Iterator[ModelError]:
    """Yield an error for rows that a kind of sink does not take."""
    replaced = branch.is_table or branch.shape.is_upsert
    if replaced and isinstance(sink, ConnectedTableSpec) and sink.mode == "append":
        yield ModelError(
            "'mode: append' takes rows that stay, and these are rows of a table, which change and "
            "go",
            spec.place(*branch.write.at, "mode"),
            "remove it: each row of the table is then one row of the output",
        )
    promised = sink_kind(sink.kind).capabilities(spec.delivery, sink.settings)
    if replaced and "upsert" not in promised.accepts:
        yield ModelError(
            f"'{sink.kind}' takes rows that stay, and these are rows of a table, which change and "
            "go",
            spec.place(*branch.write.at, "type"),
            _INSTEAD.get(sink.kind, "write them to a topic, which is then compacted"),
        )
    elif isinstance(sink, CommandSpec) and replaced:
        yield from without_operation(spec, branch.write, sink)
    elif isinstance(sink, FilesSpec) and sink.partition is not None and branch.gathered:
        yield ModelError(
            f"'partition: {sink.partition}' is of event time, and rows of groups have none",
            spec.place(*branch.write.at, "partition"),
            "select a column such as CAST(window_start AS DATE) AS day, and write "
            "partition_by: [day]",
        )


def unfit_columns(
    spec: PipelineSpec, write: Write, columns: Sequence[Column]
) -> Iterator[ModelError]:
    """Yield an error for each column that a kind of sink has no type or name for."""
    if write.sink is not None:
        for found in sink_kind(write.sink.kind).unfit(columns, write.sink.settings):
            yield ModelError(found.why, spec.place(*write.query_at), found.hint)

"""Finds the columns of inputs that declare none: in the schema registry, or in first records."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import assert_never

from kaflow_engine.connectors.attached.table import AttachedTable
from kaflow_engine.connectors.kafka.clusters.input_topics import cluster_of
from kaflow_engine.connectors.kafka.clusters.reached import registry_of
from kaflow_engine.connectors.kafka.topic_schemas import resolve_schemas
from kaflow_engine.connectors.pyspark.classes import MODULE
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.errors import SourceError, SourceUnfit
from kaflow_engine.flow.origins.databases import ClickHouseParams, PostgresParams
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.flow.origins.hybrid import HybridParams
from kaflow_engine.flow.origins.plugins import JournalledPluginParams, PluginParams, PySparkParams
from kaflow_engine.flow.sources import (
    GeneratorParams,
    HttpParams,
    MqttParams,
    SourceParams,
    WebhookParams,
    WebsocketParams,
)
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.sources.plugin_specs import PYSPARK
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.sources import source_params
from kaflow_engine.sql.named.attached import attached_text
from kaflow_engine.sql.transforms.attached import AttachedText


def resolve_columns(
    spec: PipelineSpec,
    config: Config,
    names: Sequence[str],
    *,
    wait_ms: int = 60_000,
    on_wait: Callable[[str], None] = lambda text: None,
    stopped: Callable[[], bool] = lambda: False,
    endless: bool = False,
) -> dict[str, tuple[Column, ...]]:
    """Return the columns of topics and of other sources.

    Args:
        spec: The pipeline that reads them.
        config: Where brokers and registry are.
        names: What has no columns in the file.
        wait_ms: How long to wait for a first record or schema of a topic.
        on_wait: Called once for each topic that is waited for.
        stopped: Asked while waiting whether to give up early.
        endless: Wait for topics without end whose file says `wait_for`.

    Raises:
        SourceError: One does not exist, or its columns cannot be found.
    """
    shown = {name: _shown_by(spec, config, name) for name in names if name in spec.sources}
    topics = [name for name in names if name not in shown]
    if not topics:
        return shown
    return shown | resolve_schemas(
        spec,
        config,
        topics,
        wait_ms=wait_ms,
        on_wait=on_wait,
        stopped=stopped,
        endless=endless,
    )


def connection_of_stores(config: Config) -> dict[str, str]:
    """Return how stores of objects are reached: as the one for checkpoints is."""
    s3 = config.state.rocksdb.checkpoint.s3
    said = {
        "region": s3.region,
        "endpoint": s3.endpoint,
        "access_key": s3.access_key,
        "secret_key": s3.secret_key,
    }
    return {name: value for name, value in said.items() if value is not None}


def connection_of_source(config: Config, params: SourceParams) -> Mapping[str, str]:
    """Return how what a source reads is reached.

    Raises:
        SourceUnfit: The configuration does not say it.
    """
    match params:
        case FilesParams():
            return connection_of_stores(config)
        case (
            PostgresParams(type=kind, connection=name)
            | ClickHouseParams(type=kind, connection=name)
        ):
            return _connection(config, kind, name)
        case HybridParams(phases=phases, cluster=cluster, topic=topic):
            reached = {str(n): dict(connection_of_source(config, p)) for n, p in enumerate(phases)}
            kafka = asdict(cluster_of(config.kafka, cluster))
            found = {"phases": json.dumps(reached), "kafka": json.dumps(kafka)}
            registry = registry_of(config, cluster) if topic is not None else None
            return found | ({"registry": registry.url} if registry else {})
        case PluginParams() | JournalledPluginParams():
            return _of_plugin(config, params.type)
        case PySparkParams():
            return _of_plugin(config, f"{PYSPARK}{params.format}")
        case GeneratorParams() | WebhookParams() | WebsocketParams() | HttpParams() | MqttParams():
            return {}
        case _:
            assert_never(params)


def _connection(config: Config, kind: str, name: str) -> Mapping[str, str]:
    known = config.connections[kind]
    if name not in known:
        raise SourceUnfit(
            f"connection '{name}' of a source is not in the configuration",
            hint=f"add it under {kind}.connections",
        )
    return known[name].settings


def attached_columns(config: Config, attached: AttachedText) -> tuple[Column, ...]:
    """Look at a table that queries look up; return its columns.

    Raises:
        SourceError: It cannot be looked up.
    """
    reached = attached.params.reached_by
    connection = _connection(config, *reached) if reached is not None else dict[str, str]()
    return AttachedTable(attached.params, connection, attached.name).columns()


def require_sources(spec: PipelineSpec, config: Config) -> None:
    """Look at what sources read whose columns are declared, before a state is begun with them.

    Raises:
        SourceError: One cannot be read.
    """
    for name, said in spec.sources.items():
        attached, params = attached_text(spec, name), source_params(spec, name)
        if said.typed is None:
            continue
        with _placed(spec, name):
            if attached is not None:
                attached_columns(config, attached)
            elif params is not None:
                connection = connection_of_source(config, params)
                source_kind(said.type).check(params, connection)


@contextmanager
def _placed(spec: PipelineSpec, name: str) -> Generator[None]:
    """Say where in its file the source stands that cannot be read."""
    try:
        yield
    except SourceError as error:
        raise type(error)(error.message, spec.place("sources", name), error.hint) from error


def _of_plugin(config: Config, name: str) -> Mapping[str, str]:
    said = config.plugins.get(name)
    if said is None:
        return {}
    return said.settings if said.module is None else {**said.settings, MODULE: said.module}


def _shown_by(spec: PipelineSpec, config: Config, name: str) -> tuple[Column, ...]:
    said, params = spec.sources[name], source_params(spec, name)
    with _placed(spec, name):
        if (attached := attached_text(spec, name)) is not None:
            return attached_columns(config, attached)
        assert params is not None
        form, connection = format_of(said.value_format), connection_of_source(config, params)
        found = source_kind(said.type).sample(params, form, connection)
    if found is None:
        raise SourceError(
            f"source '{name}' has no record yet, so its columns are not known",
            spec.place("sources", name),
            f"declare sources.{name}.columns, or start again when it has a first record",
        )
    return found

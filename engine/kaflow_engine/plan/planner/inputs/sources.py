"""Sources that are no topics: their settings as a plan keeps them."""

from collections.abc import Iterator, Mapping
from typing import assert_never

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.flow.origins.databases import ClickHouseParams, DatabaseParams
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.flow.origins.hybrid import HandoverParams, HybridParams, PhaseParams
from kaflow_engine.flow.origins.plugins import PySparkParams
from kaflow_engine.flow.sources import (
    CursorParams,
    DrawnParams,
    GeneratorParams,
    HttpParams,
    MqttParams,
    SourceParams,
    ValueParams,
    WebhookParams,
    WebsocketParams,
)
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.relations.transform_specs import HandlerSpec
from kaflow_engine.model.sources.addresses import ValueSpec
from kaflow_engine.model.sources.attached_specs import (
    ConnectedTableSpec,
    DuckDBSourceSpec,
    MySQLSourceSpec,
    SQLiteSourceSpec,
    SqlSourceSpec,
)
from kaflow_engine.model.sources.database_specs import (
    ClickHouseSourceSpec,
    ClickHouseTableSpec,
    PostgresSourceSpec,
    PostgresTableSpec,
)
from kaflow_engine.model.sources.hybrid_specs import (
    AnyPhase,
    FilesPhaseSpec,
    HandoverSpec,
    HybridSourceSpec,
    with_phases,
)
from kaflow_engine.model.sources.live_specs import (
    HttpSourceSpec,
    MqttSourceSpec,
    WebhookSourceSpec,
    WebsocketSourceSpec,
)
from kaflow_engine.model.sources.plugin_specs import PluginSourceSpec, PySparkSourceSpec
from kaflow_engine.model.sources.source_specs import FilesSourceSpec, GeneratorSourceSpec
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.history import absolute
from kaflow_engine.plan.planner.inputs.source_plugins import plugin_params
from kaflow_engine.sql.named.attached import declared_columns, postgres_params
from kaflow_engine.sql.types.bind import normal_type


def wrong_secrets(spec: PipelineSpec, config: Config) -> Iterator[ModelError]:
    """Yield the secrets of sources and handlers that the configuration does not have."""
    for path, secret in _secrets(spec):
        if secret not in config.secrets:
            error = UnknownName("secret", secret, config.secrets, spec.place(*path))
            variable = f"{{{secret}: ${{VARIABLE}}}}"
            error.hint = error.hint or f"add secrets: {variable} to the configuration"
            yield error


def wrong_connections(spec: PipelineSpec, config: Config) -> Iterator[ModelError]:
    """Yield the connections that sources name and the configuration does not have."""
    for path, table in _tables(spec):
        kind, called, known = table.type, table.connection, config.connections[table.type]
        if called not in known:
            error = UnknownName("connection", called, known, spec.place(*path, "connection"))
            error.hint = error.hint or (
                f"add {kind}: {{connections: {{{called}: {{{table.needs}}}}}}} to the configuration"
            )
            yield error


def _tables(spec: PipelineSpec) -> Iterator[tuple[Path, ConnectedTableSpec]]:
    """Yield the tables of databases that a pipeline names, and where the file says so."""
    for path, said in with_phases(spec.sources):
        if isinstance(said, ConnectedTableSpec):
            yield path, said


def _secrets(spec: PipelineSpec) -> Iterator[tuple[Path, str]]:
    for name, said in spec.sources.items():
        for path, secret in said.secrets:
            yield ("sources", name, *path), secret
    for name, said in spec.transforms.items():
        if isinstance(said, HandlerSpec):
            for path, secret in said.secrets.items():
                yield ("relations", name, *path), secret


def source_params(spec: PipelineSpec, name: str) -> SourceParams | None:
    """Return where the records of a name come from; None: it is a topic, or looked up."""
    if name not in spec.sources:
        return None
    said = spec.sources[name]
    match said:
        case FilesSourceSpec():
            return FilesParams(
                path=absolute(said.path),
                format=said.format,
                header=said.header,
                settle=said.settle,
            )
        case GeneratorSourceSpec():
            return GeneratorParams(
                rate=said.rate,
                seed=said.seed,
                records=said.records,
                start=None if said.start is None else round(said.start.timestamp() * 1000),
                values=tuple(
                    DrawnParams(name=name, **drawn.model_dump())
                    for name, drawn in said.values.items()
                ),
            )
        case WebhookSourceSpec(signature=signature):
            return WebhookParams(
                listen=said.listen,
                path=said.path,
                secret=None if signature is None else signature.secret,
                signature_header="" if signature is None else signature.header,
                signature_prefix="" if signature is None else signature.prefix,
                idempotency_header=said.idempotency_header,
                max_bytes=said.max_bytes,
                max_connections=said.max_connections,
                max_backlog=said.max_backlog,
            )
        case (
            PostgresSourceSpec(attached=True)
            | MySQLSourceSpec()
            | SQLiteSourceSpec()
            | DuckDBSourceSpec()
            | SqlSourceSpec()
        ):
            return None
        case PostgresSourceSpec() | ClickHouseSourceSpec():
            return _table(said, declared_columns(said))
        case HybridSourceSpec():
            return HybridParams(
                phases=tuple(_phase(phase, declared_columns(said)) for phase in said.phases),
                topic=said.topic if said.reads_topic else None,
                handover=_handover(said.handover) if said.reads_topic else None,
                cluster=said.cluster or "" if said.reads_topic else "",
                avro=declared_columns(said) or () if said.reads_avro else (),
            )
        case WebsocketSourceSpec():
            return WebsocketParams(
                url=said.url,
                headers=_named(said.headers),
                parameters=_named(said.parameters),
                send=tuple(_value(each) for each in said.send),
                max_bytes=said.max_bytes,
                max_backlog=said.max_backlog,
                ping=said.ping,
            )
        case HttpSourceSpec(cursor=cursor):
            return HttpParams(
                url=said.url,
                headers=_named(said.headers),
                parameters=_named(said.parameters),
                interval=said.interval,
                records=said.records,
                cursor=None if cursor is None else CursorParams(**cursor.model_dump()),
                next=said.next,
                max_pages=said.max_pages,
                max_bytes=said.max_bytes,
                max_backlog=said.max_backlog,
                timeout=said.timeout,
            )
        case MqttSourceSpec():
            return MqttParams(
                broker=said.broker,
                topics=said.topics,
                client_id=said.client_id or f"kaflow-{spec.id}-{name}",
                user=None if said.user is None else _value(said.user),
                password=None if said.password is None else said.password.secret,
                ca=None if said.ca is None else absolute(said.ca),
                max_backlog=said.max_backlog,
                keepalive=said.keepalive,
            )
        case PySparkSourceSpec():
            return PySparkParams(
                format=said.format,
                options=tuple(said.texts.items()),
                columns=tuple(Column(c, normal_type(t)) for c, t in (said.columns or {}).items()),
                bounded=said.read == "batch",
                interval=said.interval,
                max_backlog=said.max_backlog,
            )
        case PluginSourceSpec():
            return plugin_params(spec, name, said)
        case _:
            assert_never(said)


def _named(values: Mapping[str, ValueSpec]) -> tuple[ValueParams, ...]:
    return tuple(_value(value, name) for name, value in values.items())


def _value(value: ValueSpec, name: str = "") -> ValueParams:
    return ValueParams(name=name, text=value.prefix, secret=value.secret)


def _table(
    said: PostgresTableSpec | ClickHouseTableSpec, columns: tuple[Column, ...]
) -> DatabaseParams:
    if isinstance(said, PostgresTableSpec):
        return postgres_params(said, columns)
    return ClickHouseParams(
        connection=said.connection,
        table=said.table_name,
        where=said.where,
        page_size=said.page_size,
        columns=columns,
        start_at=said.start_at,
    )


def _phase(said: AnyPhase, columns: tuple[Column, ...]) -> PhaseParams:
    if isinstance(said, FilesPhaseSpec):
        path, settle = absolute(said.path), said.settle
        return FilesParams(path=path, format=said.format, header=False, settle=settle)
    return _table(said, columns)


def _handover(said: HandoverSpec) -> HandoverParams:
    columns, offsets = said.columns, said.offsets
    return HandoverParams(
        columns=None if columns is None else (columns.partition, columns.offset),
        offsets=None if offsets is None else tuple((int(p), at) for p, at in offsets.items()),
        time=None if said.time is None else round(said.time.timestamp() * 1000),
        query=said.query,
        start_at=said.start_at,
    )

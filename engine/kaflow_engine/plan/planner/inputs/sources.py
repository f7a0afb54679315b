"""Sources that are no topics: their settings as a plan keeps them."""

from collections.abc import Iterator, Mapping
from typing import assert_never

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.flow.sources import (
    ClickHouseParams,
    DatabaseParams,
    DrawnParams,
    FilesParams,
    GeneratorParams,
    HandoverParams,
    HybridParams,
    PhaseParams,
    PostgresParams,
    SourceParams,
    WebhookParams,
)
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.sources.database_specs import (
    ClickHouseSourceSpec,
    ClickHouseTableSpec,
    DatabaseTableSpec,
    PostgresSourceSpec,
    PostgresTableSpec,
)
from kaflow_engine.model.sources.hybrid_specs import (
    AnyPhase,
    FilesPhaseSpec,
    HandoverSpec,
    HybridSourceSpec,
)
from kaflow_engine.model.sources.source_specs import (
    FilesSourceSpec,
    GeneratorSourceSpec,
    WebhookSourceSpec,
)
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.history import absolute


def wrong_secrets(spec: PipelineSpec, config: Config) -> Iterator[ModelError]:
    """Yield what sources are signed with that the configuration does not have."""
    for name, said in spec.sources.items():
        signature = said.signature if isinstance(said, WebhookSourceSpec) else None
        if signature is not None and signature.secret not in config.secrets:
            at = spec.place("sources", name, "signature", "secret")
            error = UnknownName("secret", signature.secret, config.secrets, at)
            variable = f"{{{signature.secret}: ${{VARIABLE}}}}"
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


def _tables(spec: PipelineSpec) -> Iterator[tuple[Path, DatabaseTableSpec]]:
    """Yield the tables of databases that a pipeline reads, and where the file says so."""
    for name, said in spec.sources.items():
        if isinstance(said, DatabaseTableSpec):
            yield ("sources", name), said
        for number, phase in enumerate(said.phases if isinstance(said, HybridSourceSpec) else ()):
            if isinstance(phase, DatabaseTableSpec):
                yield ("sources", name, "phases", number), phase


def source_params(spec: PipelineSpec, name: str) -> SourceParams | None:
    """Return where the records of a name come from; None: it is a topic."""
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
        case PostgresSourceSpec() | ClickHouseSourceSpec():
            return _table(said, said.columns)
        case HybridSourceSpec():
            return HybridParams(
                phases=tuple(_phase(phase, said.columns) for phase in said.phases),
                topic=said.topic if said.reads_topic else None,
                handover=_handover(said.handover) if said.reads_topic else None,
            )
        case _:
            assert_never(said)


def _table(
    said: PostgresTableSpec | ClickHouseTableSpec, columns: Mapping[str, str] | None
) -> DatabaseParams:
    declared = tuple(Column(name, kind) for name, kind in (columns or {}).items())
    match said:
        case PostgresTableSpec():
            return PostgresParams(
                connection=said.connection,
                table=said.table_name,
                where=said.where,
                key=said.page_key,
                page_size=said.page_size,
                columns=declared,
            )
        case ClickHouseTableSpec():
            return ClickHouseParams(
                connection=said.connection,
                table=said.table_name,
                where=said.where,
                page_size=said.page_size,
                columns=declared,
            )
        case _:
            assert_never(said)


def _phase(said: AnyPhase, columns: Mapping[str, str] | None) -> PhaseParams:
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
    )

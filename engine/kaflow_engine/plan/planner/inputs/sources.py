"""Sources that are no topics: their settings as a plan keeps them."""

from collections.abc import Iterator
from typing import assert_never

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.flow.sources import (
    ClickHouseParams,
    DrawnParams,
    FilesParams,
    GeneratorParams,
    PostgresParams,
    SourceParams,
    WebhookParams,
)
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.sources.database_specs import (
    ClickHouseSourceSpec,
    DatabaseSourceSpec,
    PostgresSourceSpec,
)
from kaflow_engine.model.sources.source_specs import (
    FilesSourceSpec,
    GeneratorSourceSpec,
    WebhookSourceSpec,
)
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
    for name, said in spec.sources.items():
        if not isinstance(said, DatabaseSourceSpec):
            continue
        kind, called, known = said.type, said.connection, config.connections[said.type]
        if called not in known:
            place = spec.place("sources", name, "connection")
            error = UnknownName("connection", called, known, place)
            error.hint = error.hint or (
                f"add {kind}: {{connections: {{{called}: {{{said.needs}}}}}}} to the configuration"
            )
            yield error


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
        case PostgresSourceSpec():
            return PostgresParams(
                connection=said.connection,
                table=said.table_name,
                where=said.where,
                key=said.page_key,
                page_size=said.page_size,
                columns=_declared(said),
            )
        case ClickHouseSourceSpec():
            return ClickHouseParams(
                connection=said.connection,
                table=said.table_name,
                where=said.where,
                page_size=said.page_size,
                columns=_declared(said),
            )
        case _:
            assert_never(said)


def _declared(said: DatabaseSourceSpec) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind in (said.columns or {}).items())

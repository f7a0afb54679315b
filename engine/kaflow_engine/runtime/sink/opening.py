"""What a run delivers with: its connections, and all of its sinks."""

from collections.abc import Iterator
from pathlib import Path

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.contract import Sink
from kaflow_engine.connectors.record_sink import RecordSink
from kaflow_engine.connectors.run_log import RunLog, RunStart
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.transforms import PluginTransformParams, Transform
from kaflow_engine.model.config import Config
from kaflow_engine.plugins.finalizing import Finalizing
from kaflow_engine.plugins.raised import OF_TRANSFORMS, plugin_errors
from kaflow_engine.plugins.transforms import transform_plugin
from kaflow_engine.runtime.planning.columns import connection_of_stores
from kaflow_engine.runtime.sink.outputs import open_outputs
from kaflow_engine.state.log.batch_log import StateRecord
from kaflow_engine.state.storage.store import Store
from kaflow_engine.transforms.plugin.rows import given_transform


def sinks_of_run(
    records: RecordSink,
    letters: Sink | None,
    plan: Flow,
    state: StateRecord,
    store: Store,
    control: RunLog,
    start: RunStart,
    connections: Connections,
) -> tuple[Sink, ...]:
    """Open the sinks of a run, which has begun.

    Args:
        records: What takes its records.
        letters: What takes its dead letters, where they go elsewhere.
        plan: What is to run.
        state: Whose batches they are.
        store: Where a backfill keeps notes of its files.
        control: The log of runs.
        start: What that says.
        connections: Where outside systems are.

    Raises:
        SinkError: One cannot be written.
        StateError: A backfill cannot replace what one has.
    """
    return (
        records,
        *((letters,) if letters is not None else ()),
        *open_outputs(plan, state, store, control.require_newest, connections, start.epoch),
    )


def registries_of(config: Config) -> dict[str, str]:
    """Return the addresses of schema registries, by cluster."""
    every = {name: cluster.schema_registry for name, cluster in config.kafka.every.items()}
    return {name: url for name, url in every.items() if url is not None}


def connections_of(config: Config) -> Connections:
    """Return where the outside systems of a configuration are, beside Kafka."""
    named = {
        (kind, name): one.settings
        for kind, ones in config.connections.items()
        for name, one in ones.items()
    }
    plugins = {(name, ""): one.settings for name, one in config.plugins.items()}
    warehouse = {"warehouse": str(Path(config.warehouse).absolute())}
    files = {("files", ""): {**warehouse, **connection_of_stores(config)}}
    secrets = {("secrets", ""): config.secrets}
    return Connections({**named, **plugins, **files, **secrets})


def hearing_of(plan: Flow, connections: Connections) -> tuple[Finalizing, ...]:
    """Return what hears of the commits of a plan.

    Raises:
        ModelError: A plugin is not installed any more.
        SinkUnfit: One fails.
    """
    return tuple(_hearing(plan, connections))


def _hearing(plan: Flow, connections: Connections) -> Iterator[Finalizing]:
    for operator in plan.operators:
        if not isinstance(operator, Transform):
            continue
        params = operator.params
        if not isinstance(params, PluginTransformParams):
            continue
        kind = transform_plugin(params.plugin)
        made = getattr(kind, "finalizing", None)  # of kinds from version 3 of the contract on
        if made is None:
            continue
        called = f"plugin '{params.plugin}' of '{operator.name}'"
        with plugin_errors(OF_TRANSFORMS, called, "fails at 'finalizing'"):
            found = made(given_transform(operator, params, connections.of(params.plugin, None)))
        if found is not None:
            yield found

"""What a run delivers with: the settings of its topics, its connections, and all of its sinks."""

from pathlib import Path

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.contract import Sink
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery.deliver import SinkSettings
from kaflow_engine.connectors.kafka.delivery.topic_sink import TopicSink
from kaflow_engine.connectors.record_sink import RecordSink
from kaflow_engine.connectors.run_log import RunLog, RunStart
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.sink.outputs import open_outputs
from kaflow_engine.state.log.batch_log import StateRecord
from kaflow_engine.state.storage.store import Store

SINK = "output"
"""Name of the one sink in delivery markers."""


def records_of_run(
    kafka: KafkaSettings, plan: Flow, state: StateRecord, start: RunStart
) -> RecordSink:
    """Return what takes the records of a run: rows for topics, and dead letters."""
    topics = SinkSettings(
        kafka=kafka,
        pipeline_id=plan.pipeline,
        state_id=state.state_id,
        generation=state.generation,
        sink=SINK,
        epoch=start.epoch,
        epoch_offset=start.epoch_offset,
        exactly_once=plan.delivery == "exactly_once",
        delivered=start.delivered_to(SINK),
    )
    return TopicSink(topics, held=max(start.delivered.values(), default=0))


def sinks_of_run(
    records: RecordSink,
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
        *open_outputs(plan, state, store, control.require_newest, connections, start.epoch),
    )


def connections_of(config: Config) -> Connections:
    """Return where the outside systems of a configuration are, beside Kafka."""
    named = {
        (kind, name): one.settings
        for kind, ones in config.connections.items()
        for name, one in ones.items()
    }
    plugins = {(name, ""): one.settings for name, one in config.plugins.items()}
    files = {("files", ""): {"warehouse": str(Path(config.warehouse).absolute())}}
    return Connections({**named, **plugins, **files})

"""What every task of a run must know."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.contract import TaskSink
from kaflow_engine.connectors.record_sink import RecordSink
from kaflow_engine.flow.chains.chain import driving_topics
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import OtlpConfig
from kaflow_engine.runtime.tasks.outputs import NO_CONNECTIONS
from kaflow_engine.runtime.tasks.side_outputs import OpenSideOutputs
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.copy_location import CopyPlace, InState
from kaflow_engine.state.storage.store import Store
from kaflow_engine.telemetry.traces import is_sent


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """What every task of a run must know; picklable."""

    plan: Flow
    directory: Path
    """The state directory of the pipeline."""
    state: StateRef
    epoch: int
    snapshots: Store
    sink: RecordSink | None
    """What takes records; None: rows of schema OUTPUT come back to the driver instead."""
    driver: int
    """Process id of the driver."""
    registries: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Addresses of schema registries, by cluster."""
    schemas: Mapping[int, str] | None = None
    """Writer schemas by id, where they do not come from a registry."""
    letters: TaskSink | None = None
    """What takes dead letters that go into files, beside rows that go to topics."""
    connections: Connections = NO_CONNECTIONS
    """Where outside systems are that rows go to."""
    copies: CopyPlace | None = None
    """Where RocksDB copies are; None: in the state directory."""
    functions: tuple[str, ...] = ()
    """Modules of the functions that the SQL of the plan may call."""
    traced: frozenset[str] = frozenset()
    """Topics whose headers `traceparent` tasks report; none where no traces are sent."""
    side_outputs: OpenSideOutputs = field(default_factory=OpenSideOutputs, compare=False)

    @property
    def place(self) -> CopyPlace:
        """Where RocksDB copies are."""
        return self.copies or InState(self.directory)


def traced_topics(plan: Flow, config: OtlpConfig) -> frozenset[str]:
    """Return the topics whose records make rows, where traces are sent."""
    if not is_sent(config):
        return frozenset()
    return frozenset(topic.name for sink in plan.sinks for topic in driving_topics(plan, sink))

"""The inputs of a run: topics of Kafka, and sources that a file names by their kind."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kaflow_engine.connectors.journal.folder import journal_folder
from kaflow_engine.connectors.kafka.admin import KNOWN_BEFORE_S
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics
from kaflow_engine.connectors.sources.contract import NamedSource, SourcePlace, StartPolicy
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.sources import SourceParams
from kaflow_engine.model.outputs.cluster_specs import KafkaConfig
from kaflow_engine.runtime.clock.batch_clock import wall_clock
from kaflow_engine.runtime.planning.plan_codec import plan_of
from kaflow_engine.state.log.batch_log import BatchLog, Offsets, TopicIds
from kaflow_engine.state.storage.store import Store

NamedSources = Mapping[str, NamedSource]
"""By the names that queries call them by."""
ConnectionOf = Callable[[SourceParams], Mapping[str, str]]
"""Says how what a source reads is reached."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Partitions and offsets of whatever a pipeline reads."""

    topics: InputTopics
    named: NamedSources = field(default_factory=dict[str, NamedSource])

    def partitions(self, plan: Flow, new: bool = False) -> dict[str, int]:
        """Return the partitions of what a pipeline reads.

        Args:
            plan: Of the pipeline.
            new: Whether nothing was read yet; a topic that no broker knows is an error at once.

        Raises:
            SourceError: A topic does not exist, or no broker answers.
        """
        topics = self._topics(topic.name for topic in plan.sources)
        named = {t.name: len(self.named[t.name].partitions()) for t in plan.sources if t.connector}
        if not topics:
            return named
        wait = 0.0 if new else KNOWN_BEFORE_S
        return self.topics.partitions(topics, unknown_for=wait) | named

    def ids(self, names: Iterable[str]) -> TopicIds:
        """Return the ids of those that are topics and have one.

        Raises:
            SourceError: No broker answers.
        """
        topics = self._topics(names)
        return self.topics.ids(topics) if topics else {}

    def finite(self, names: Iterable[str]) -> frozenset[str]:
        """Return those all of whose records are there already."""
        return frozenset(name for name in names if name in self.named and self.named[name].finite)

    def ended(self, names: Iterable[str]) -> bool:
        """Tell whether nothing comes behind the ends of all of some inputs, for good."""
        return all(name in self.named and self.named[name].bounded for name in names)

    def offsets(
        self, counts: Mapping[str, int], when: StartPolicy, *, committed: bool = True
    ) -> Offsets:
        """Return offsets of every partition.

        Args:
            counts: What is asked for, with its partitions.
            when: Which offsets.
            committed: Whether the end of a topic is that of its committed records.

        Raises:
            SourceError: A topic or source cannot be read.
        """
        topics = {name: counts[name] for name in self._topics(counts)}
        found: Offsets = self.topics.offsets(topics, when, committed=committed) if topics else {}
        for name in counts.keys() - topics.keys():
            found[name] = dict(self.named[name].start(when))
        return found

    def _topics(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.named]


def open_inputs(
    kafka: KafkaConfig, log: BatchLog, plan: Flow, root: Path, connection: ConnectionOf
) -> Inputs:
    """Return what a plan reads, and what batches read that its state has begun with another one.

    Args:
        kafka: Where the clusters are.
        log: Of the state, if there is one.
        plan: What will run.
        root: The folder of all states.
        connection: How what a source reads is reached.

    Raises:
        Damaged: What sources have kept in the state cannot be read.
    """
    state = log.load_state()
    plans = [plan] if state is None else [plan_of(log.load_plan(state.fingerprint)), plan]
    named: dict[str, NamedSource] = {}
    for each in plans:
        named |= open_sources(each, log.store, root, connection)
    topics = InputTopics.of(kafka, [topic for each in plans for topic in each.sources])
    return Inputs(topics, named)


def open_sources(plan: Flow, store: Store, root: Path, connection: ConnectionOf) -> NamedSources:
    """Open the sources of a plan that are no topics.

    Args:
        plan: What reads them.
        store: The state directory.
        root: The folder of all states.
        connection: How what a source reads is reached.

    Raises:
        Damaged: What they have kept there cannot be read.
    """
    return {
        topic.name: source_kind(topic.connector.type).open(
            topic.connector,
            SourcePlace(
                name=topic.name,
                store=store,
                journal=journal_folder(root, plan.pipeline, topic.name),
                clock=wall_clock,
                connection=connection(topic.connector),
                whole=topic.is_kept,
            ),
        )
        for topic in plan.sources
        if topic.connector is not None
    }

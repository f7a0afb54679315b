"""The inputs of a run: topics of Kafka, and sources that a file names by their kind."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kaflow_engine.connectors.journal.folder import journal_folder
from kaflow_engine.connectors.kafka.admin import KNOWN_BEFORE_S, offsets, require
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.topics import topic_ids
from kaflow_engine.connectors.sources.contract import NamedSource, SourcePlace, StartPolicy
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.sources import SourceParams
from kaflow_engine.runtime.clock.batch_clock import wall_clock
from kaflow_engine.runtime.planning.plan_codec import plan_of
from kaflow_engine.state.log.batch_log import BatchLog, Offsets, TopicIds
from kaflow_engine.state.storage.store import Store

NamedSources = Mapping[str, NamedSource]
"""By the names that queries call them by."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Partitions and offsets of whatever a pipeline reads."""

    kafka: KafkaSettings
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
        return require(self.kafka, topics, unknown_for=0.0 if new else KNOWN_BEFORE_S) | named

    def ids(self, names: Iterable[str]) -> TopicIds:
        """Return the ids of those that are topics and have one.

        Raises:
            SourceError: No broker answers.
        """
        topics = self._topics(names)
        return topic_ids(self.kafka, topics) if topics else {}

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
        found: Offsets = offsets(self.kafka, topics, when, committed=committed) if topics else {}
        for name in counts.keys() - topics.keys():
            found[name] = dict(self.named[name].start(when))
        return found

    def _topics(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.named]


def open_inputs(
    kafka: KafkaSettings,
    log: BatchLog,
    plan: Flow,
    root: Path,
    reached: Callable[[SourceParams], Mapping[str, str]],
) -> Inputs:
    """Return what a plan reads, and what batches read that its state has begun with another one.

    Args:
        kafka: Where the topics are.
        log: Of the state, if there is one.
        plan: What will run.
        root: The folder of all states.
        reached: How what a source reads is reached.

    Raises:
        Damaged: What sources have kept in the state cannot be read.
    """
    state = log.load_state()
    plans = [plan] if state is None else [plan_of(log.load_plan(state.fingerprint)), plan]
    named: dict[str, NamedSource] = {}
    for each in plans:
        named |= open_sources(each, log.store, root, reached)
    return Inputs(kafka, named)


def open_sources(
    plan: Flow, store: Store, root: Path, reached: Callable[[SourceParams], Mapping[str, str]]
) -> NamedSources:
    """Open the sources of a plan that are no topics.

    Args:
        plan: What reads them.
        store: The state directory.
        root: The folder of all states.
        reached: How what a source reads is reached.

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
                connection=reached(topic.connector),
            ),
        )
        for topic in plan.sources
        if topic.connector is not None
    }

"""Reports how far a pipeline has read, to a consumer group and to the table of another program."""

import logging
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics, OfCluster
from kaflow_engine.connectors.kafka.consumer_group import GroupCommitter
from kaflow_engine.connectors.positions.kept import kept_positions
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.sink.opening import connections_of
from kaflow_engine.runtime.tasks.crash import crash_point
from kaflow_engine.state.log.batch_log import Offsets

LOGGER = logging.getLogger("kaflow.runtime")


class Reported(Protocol):
    """What takes positions; its text says what it is."""

    def commit(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Take the next offset of each partition, by topic.

        Raises:
            KaflowError: It cannot.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Group:
    """A consumer group of one cluster."""

    name: str
    topics: OfCluster
    committer: GroupCommitter

    def __str__(self) -> str:
        return f"consumer group '{self.name}'"

    def commit(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Commit the offsets of its topics."""
        names = self.topics.names.items()
        self.committer.commit({t: offsets[name] for t, name in names if name in offsets})


class PositionReporter:
    """Reports for lag tools and other programs; nothing here depends on it, so nothing waits for
    it.

    The first report is made at once and may fail; after that a failure is logged.
    """

    def __init__(self, targets: Sequence[Reported]) -> None:
        self._targets = targets
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="kaflow-group")
        self._running: Future[None] | None = None
        self._newest: tuple[int, Offsets] | None = None

    def report(self, batch: int, offsets: Offsets) -> None:
        """Report where the pipeline stands; of several reports in a row only the last counts."""
        self._newest = batch, offsets
        if self._running is None or self._running.done():
            self._running = self._thread.submit(self._commit)

    def close(self) -> None:
        """Wait for the last report."""
        self._thread.shutdown(wait=True)
        self._commit()

    def _commit(self) -> None:
        while (newest := self._newest) is not None:
            self._newest = None
            batch, offsets = newest
            crash_point("before_group", batch, os.getpid())
            for target in self._targets:
                try:
                    target.commit(offsets)
                except KaflowError as error:
                    LOGGER.warning("%s: not up to date: %s", target, error)
            crash_point("group_committed", batch, os.getpid())


def position_reporter(inputs: InputTopics, plan: Flow, config: Config) -> PositionReporter | None:
    """Return what reports the offsets of a stream in its topics: to its group, or else to that of
    the configuration, in each of their clusters, and to the table that the plan names; None where
    it has none to show, as a backfill."""
    topics = frozenset(topic.name for topic in plan.sources if topic.connector is None)
    if plan.backfill is not None or not topics:
        return None
    name = plan.consumer_group or config.kafka.consumer.group or f"kaflow-{plan.pipeline}"
    groups = (_Group(name, s, GroupCommitter(s.kafka, name)) for s in inputs.by_cluster(topics))
    kept = kept_positions(plan.positions, connections_of(config))
    return PositionReporter([*groups, *([] if kept is None else [kept])])

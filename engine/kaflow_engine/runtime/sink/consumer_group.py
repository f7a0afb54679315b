"""Commits consumed offsets to a consumer group, for monitoring only."""

import logging
import os
from concurrent.futures import Future, ThreadPoolExecutor

from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics
from kaflow_engine.connectors.kafka.consumer_group import GroupCommitter
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.runtime.tasks.crash import crash_point
from kaflow_engine.state.log.batch_log import Offsets

LOGGER = logging.getLogger("kaflow.runtime")


class GroupReporter:
    """Commits offsets for the usual lag tools; nothing depends on them, so nothing waits for them.

    The first report is made at once and may fail; after that a failure is logged.
    """

    def __init__(self, inputs: InputTopics, group: str, topics: frozenset[str]) -> None:
        self._group = group
        self._of = [(some, GroupCommitter(some.kafka, group)) for some in inputs.by_cluster(topics)]
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
            for some, committer in self._of:
                there = {t: offsets[name] for t, name in some.names.items() if name in offsets}
                try:
                    committer.commit(there)
                except KaflowError as error:
                    LOGGER.warning("consumer group '%s' is not up to date: %s", self._group, error)
            crash_point("group_committed", batch, os.getpid())


def group_reporter(inputs: InputTopics, plan: Flow, group: str | None) -> GroupReporter | None:
    """Return what reports the offsets of a stream in its topics, to its group, or else to that of
    the configuration, in each of their clusters; None where it has none to show, as a backfill."""
    topics = frozenset(topic.name for topic in plan.sources if topic.connector is None)
    if plan.backfill is not None or not topics:
        return None
    return GroupReporter(inputs, plan.consumer_group or group or f"kaflow-{plan.pipeline}", topics)

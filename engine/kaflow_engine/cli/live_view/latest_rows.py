"""The live view's newest rows: follows output topics and turns records into text."""

import json
import logging
from collections import defaultdict, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Event, Thread

import pyarrow as pa

from kaflow_engine.cli.live_view.board import ROWS
from kaflow_engine.connectors.kafka.clusters.input_topics import cluster_of
from kaflow_engine.connectors.kafka.follow import Follower, Seen
from kaflow_engine.connectors.kafka.output.rows import decode_rows
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import columns_of, topic_sinks
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.config import Config
from kaflow_engine.plan.planner.planned import PlannedPipeline

LOGGER = logging.getLogger("kaflow.cli")

Show = Callable[[Sequence[tuple[str, str]]], None]
"""Takes topic and text of new rows."""

_LOOK_S = 0.3


@contextmanager
def follow_rows(plans: Sequence[PlannedPipeline], config: Config, show: Show) -> Generator[None]:
    """Hand new committed rows to `show` while the block runs, from a thread of its own."""
    ended = Event()
    thread = Thread(target=_follow, args=(plans, config, show, ended), name="kaflow-rows")
    thread.daemon = True
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5)


def _follow(plans: Sequence[PlannedPipeline], config: Config, show: Show, ended: Event) -> None:
    flows = [planned.plan for planned in plans]
    by_cluster: dict[str, dict[str, tuple[Flow, TopicSink]]] = {}
    for plan in flows:
        for sink in topic_sinks(plan):
            by_cluster.setdefault(sink.cluster, {})[sink.topic] = plan, sink
    try:
        with ExitStack() as open_ones:
            followers: list[tuple[Follower, dict[str, tuple[Flow, TopicSink]]]] = []
            for cluster, topics in by_cluster.items():
                follower = Follower(cluster_of(config.kafka, cluster), topics)
                open_ones.callback(follower.close)
                followers.append((follower, topics))
            while followers and not ended.is_set():
                for follower, topics in followers:
                    seen = _newest(follower.look(_LOOK_S / len(followers)))
                    if seen:
                        show([_shown(each, *topics[each.topic], config) for each in seen])
    except KaflowError as error:  # the pipelines run on; only their newest rows are not shown
        LOGGER.warning("the newest rows cannot be shown: %s", error)


def _newest(seen: Sequence[Seen]) -> list[Seen]:
    """Return the last few of each topic, which spares decoding the others."""
    kept: dict[str, deque[Seen]] = defaultdict(lambda: deque(maxlen=ROWS))
    for each in seen:
        kept[each.topic].append(each)
    return sorted((s for some in kept.values() for s in some), key=lambda s: s.timestamp)


def _shown(seen: Seen, plan: Flow, sink: TopicSink, config: Config) -> tuple[str, str]:
    return sink.target, _text(seen, plan, sink, config)


def _text(seen: Seen, plan: Flow, sink: TopicSink, config: Config) -> str:
    if seen.value is None:
        return "null"
    if format_of(sink.format).traits.is_json:
        return seen.value.decode(errors="replace")
    columns = columns_of(plan, sink)
    value = pa.array([seen.value], pa.binary())
    decoded = decode_rows(config, seen.topic, sink.format, columns, value, sink.cluster)
    rows = decoded.table.to_pylist()
    return json.dumps(rows[0], default=str, ensure_ascii=False) if rows else repr(seen.value)

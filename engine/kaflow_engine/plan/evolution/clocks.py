"""Event times of topics over a plan that another one has made: each keeps the name under which the
watermark knows it."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from kaflow_engine.flow.chains.chain import Chain, edges_of
from kaflow_engine.flow.chains.names import chain_called
from kaflow_engine.flow.decodes import decoded_by
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import operator_of, source_of
from kaflow_engine.flow.operators import Decode
from kaflow_engine.flow.sources import CLOCK, TopicParams

KAFKA_TIME = "the Kafka timestamp"
_COLUMN = re.compile(r'"c\.(.+)"')


def inherit_clocks(old: Flow, new: Flow) -> Flow:
    """Return the new plan with event times under the names that the old one gave them; others get
    names that none of these has.

    Args:
        old: The plan of the state.
        new: The plan of the file.
    """
    known = {topic.name: topic for topic in old.sources}
    sources = (_named(known.get(topic.name), topic) for topic in new.sources)
    return replace(new, sources=tuple(sources))


def several_times(old: Flow, new: Flow) -> frozenset[str]:
    """Return the topics that one of the plans reads by several event times."""
    every = (*old.sources, *new.sources)
    return frozenset(topic.name for topic in every if topic.clocks or topic.clock)


def other_times(
    old: Flow, new: Flow, pairs: Sequence[tuple[Chain, Chain]], topics: Collection[str]
) -> Iterator[str]:
    """Yield where a chain that goes on reads a topic by another event time than before.

    Args:
        old: The plan of the state.
        new: The plan that is to run, as it inherits the state.
        pairs: The chains that both have.
        topics: Those that are read by several event times.
    """
    for known, chain in pairs:
        before, after = _times(old, known), _times(new, chain)
        for alias, (topic, time) in after.items():
            read, at_first = before.get(alias, (topic, time))
            if topic == read and topic in topics and time != at_first:
                yield (
                    f"{chain_called(new, chain)}, '{alias}': the event time of topic '{topic}' is "
                    f"{_said(time)}, before: {_said(at_first)}"
                )


def with_times(document: dict[str, Any], topic: TopicParams) -> dict[str, Any]:
    """Return the document of a topic with all of its event times, and without the names that the
    watermark has for them."""
    found = {name: value for name, value in document.items() if name not in ("clock", "clocks")}
    times = sorted(each.event_time or KAFKA_TIME for each in topic.by_clock)
    return {**found, "event_time": " and ".join(times)} if topic.clocks else found


def read_by(flow: Flow, read: str) -> dict[str, str]:
    """Return by which event time of its topic a Decode reads records, where that has several."""
    below = operator_of(flow, read)
    if not isinstance(below, Decode) or not flow.sources[below.source].clocks:
        return {}
    return {"event_time": decoded_by(flow, below).event_time or KAFKA_TIME}


def _named(before: TopicParams | None, topic: TopicParams) -> TopicParams:
    if before is None or not (before.clocks or before.clock or topic.clocks):
        return topic
    known = {each.event_time: each.clock_name for each in before.by_clock}
    taken = {*known.values()}
    names: list[str] = []
    for each in topic.by_clock:
        name = known.get(each.event_time)
        if name is None:
            name = each.clock_name
            name = f"{topic.name}{CLOCK}{_column(each.event_time)}" if name in taken else name
            while name in taken:
                name += "_"
        taken.add(name)
        names.append(name)
    first, *others = names
    return replace(
        topic,
        clock="" if first == topic.name else first,
        clocks=tuple(replace(e, name=n) for e, n in zip(topic.clocks, others, strict=True)),
    )


def _times(flow: Flow, chain: Chain) -> dict[str, tuple[str, str | None]]:
    """Return topic and event time of what a chain reads, by alias."""
    sides = (side for join in chain.joins for side in join.sides)
    topics = (side for side in sides if isinstance(operator_of(flow, side.input), Decode))
    found = ((edge.alias, source_of(flow, edge)) for edge in (*edges_of(flow, chain), *topics))
    return {alias: (topic.name, topic.event_time) for alias, topic in found}


def _said(event_time: str | None) -> str:
    column = _column(event_time)
    return f"column '{column}'" if event_time else KAFKA_TIME


def _column(event_time: str | None) -> str:
    found = _COLUMN.search(event_time or "")
    return found.group(1) if found else "_timestamp"

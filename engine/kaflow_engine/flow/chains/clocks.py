"""The clocks of the chains of a flow: the topics whose event time matters to each of them, by the
clock that it reads them by."""

from collections.abc import Sequence

from kaflow_engine.flow.chains.chain import (
    Chain,
    aggregates_of,
    chains,
    chains_below,
    chains_beside,
    topics_of,
)
from kaflow_engine.flow.decodes import clocks_of_sources, decoded_by
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import gathered_to, inputs_of, operator_of, source_of
from kaflow_engine.flow.operators import Decode, Operator
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.flow.tables import Append


def clocks(flow: Flow) -> dict[int, tuple[TopicParams, ...]]:
    """Return the topics whose event time matters to each chain, by the number of the chain.

    A topic whose records are events of one chain, and a table of another, is a clock of the first.
    """
    return {chain.number: _clocks_of(flow, chain) for chain in chains(flow)}


def _clocks_of(flow: Flow, chain: Chain) -> tuple[TopicParams, ...]:
    every = clocks_of_sources(flow)
    beside = _clock_names(flow, chains_beside(flow, chain))
    if chain.below:
        found = _clock_names(flow, chains_below(flow, chain)) | beside | _joined(flow, chain)
        found |= _timed_topics(flow, chain)
        return tuple(topic for topic in every if topic.clock_name in found)
    timed = _timed_topics(flow, chain)
    if timed:
        return tuple(topic for topic in every if topic.clock_name in timed)
    events = _event_topics(flow, chain) | beside
    return tuple(
        topic for topic in topics_of(flow, chain) if topic.dimension or topic.clock_name in events
    )


def _clock_names(flow: Flow, some: Sequence[Chain]) -> frozenset[str]:
    return frozenset(topic.clock_name for each in some for topic in _clocks_of(flow, each))


def _timed_topics(flow: Flow, chain: Chain) -> frozenset[str]:
    """Return the clocks of topics whose records make changes of tables that a chain groups as rows
    of their own."""
    appends = [
        below
        for each in aggregates_of(flow, chain)
        for below in gathered_to(flow, each)
        if isinstance(below, Append)
    ]
    return frozenset(name for each in appends for name in _reaching(flow, each))


def _reaching(flow: Flow, operator: Operator) -> frozenset[str]:
    """Return the clocks of topics whose records reach an operator."""
    if isinstance(operator, Decode):
        return frozenset((decoded_by(flow, operator).clock_name,))
    below = (operator_of(flow, name) for name in inputs_of(operator))
    return frozenset(name for each in below for name in _reaching(flow, each))


def _event_topics(flow: Flow, chain: Chain) -> frozenset[str]:
    """Return the clocks of topics whose records are events of a chain: they drive it, or are joined
    so."""
    driving = () if chain.tables else (chain.driving,)
    own = frozenset(source_of(flow, edge).clock_name for edge in driving)
    return own | _joined(flow, chain)


def _joined(flow: Flow, chain: Chain) -> frozenset[str]:
    """Return the clocks of topics whose records are joined as events."""
    sides = (side for join in chain.joins for side in join.sides if side.role == "event")
    topics = (side for side in sides if isinstance(operator_of(flow, side.input), Decode))
    return frozenset(source_of(flow, side).clock_name for side in topics)

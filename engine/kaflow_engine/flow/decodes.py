"""The topics of a flow by their clocks, and the operators that decode them."""

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.operators import Decode
from kaflow_engine.flow.sources import TopicParams


def decode_id(clock: str) -> str:
    """Return the id of the operator that decodes a topic by a clock: of the first one that is the
    name of the topic."""
    return f"decode:{clock}"


def decoded_by(flow: Flow, decode: Decode) -> TopicParams:
    """Return the topic that an operator decodes, by the clock of the operator."""
    return flow.sources[decode.source].by(decode.clock)


def decodes_of(flow: Flow, source: int) -> tuple[Decode, ...]:
    """Return the operators that decode a source, in the order of its clocks."""
    found = (each for each in flow.operators if isinstance(each, Decode) and each.source == source)
    return tuple(sorted(found, key=lambda decode: decode.clock))


def clocks_of_sources(flow: Flow) -> tuple[TopicParams, ...]:
    """Return the topics by each of their clocks, in the order of the sources."""
    return tuple(each for topic in flow.sources for each in topic.by_clock)

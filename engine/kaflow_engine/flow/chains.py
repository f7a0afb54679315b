"""The chains of a flow: which operators the rows of one edge from a Decode go through."""

from dataclasses import dataclass
from typing import assert_never

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import joins, operator_of, projections, projects_of, source_of
from kaflow_engine.flow.operators import Driving, KeyedJoin, Ledger, Project
from kaflow_engine.flow.sinks import Sink
from kaflow_engine.flow.sources import TopicParams

STATES = 1000
"""States of a chain are called by its number times this, and their place in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The operators that the rows of one edge from a Decode go through; others share none of
    them."""

    driving: Driving
    joins: tuple[KeyedJoin, ...]
    """Each behind those whose rows it takes."""
    projections: tuple[Project, ...]
    """In the order of the outputs, and of the branches of their unions."""
    ledger: Ledger | None
    """None where rows of one driving record never part."""

    @property
    def number(self) -> int:
        """Its number, which stays as long as the pipeline has the chain."""
        return self.driving.chain


def chains(flow: Flow) -> tuple[Chain, ...]:
    """Return the chains, in the order of the first projections of each."""
    edges = dict.fromkeys(driving_of(flow, project) for project in projections(flow))
    return tuple(_chain(flow, edge) for edge in edges)


def chain_of(flow: Flow, operator: KeyedJoin | Project | Ledger) -> Chain:
    """Return the chain to which an operator belongs."""
    return _chain(flow, driving_of(flow, operator))


def chains_into(flow: Flow, sink: Sink) -> tuple[Chain, ...]:
    """Return the chains whose rows a sink takes: several where it writes a union."""
    return tuple(
        chain
        for chain in chains(flow)
        if any(project.id in sink.inputs for project in chain.projections)
    )


def driving_topics(flow: Flow, sink: Sink) -> tuple[TopicParams, ...]:
    """Return the topics whose records a sink has rows of; other topics are joined to them."""
    names = {source_of(flow, chain.driving).name for chain in chains_into(flow, sink)}
    return tuple(topic for topic in flow.sources if topic.name in names)


def feeds(flow: Flow, chain: Chain) -> tuple[tuple[Sink, int], ...]:
    """Return what a chain feeds: outputs, each with the place of a branch of its union."""
    return tuple(
        (sink, branch)
        for sink in flow.sinks
        for branch, project in enumerate(projects_of(flow, sink))
        if project in chain.projections
    )


def chain_called(flow: Flow, chain: Chain) -> str:
    """Return what people call a chain: the outputs that it feeds, and which branches of theirs.

    Branches are counted from 1, as the SELECTs of a query are.
    """
    parts = [
        f"branch {branch + 1} of output '{sink.target}'"
        if len(projects_of(flow, sink)) > 1
        else f"output '{sink.target}'"
        for sink, branch in feeds(flow, chain)
    ]
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def chain_name(flow: Flow, chain: Chain) -> str:
    """Return what dead letters call a chain: its first output, `sales`, or a later branch of it, as
    projections are called: `sales#1` is the second one."""
    sink, branch = feeds(flow, chain)[0]
    return f"{sink.target}#{branch}" if branch else sink.target


def driving_of(flow: Flow, operator: KeyedJoin | Project | Ledger) -> Driving:
    """Return the edge along which the records come that make an operator's rows."""
    match operator:
        case KeyedJoin(rows=rows) | Project(rows=rows):
            if isinstance(rows, Driving):
                return rows
            before = operator_of(flow, rows.input)
        case Ledger(inputs=inputs):
            before = operator_of(flow, inputs[0])
        case _:
            assert_never(operator)
    assert isinstance(before, KeyedJoin | Project)
    return driving_of(flow, before)


def topics_of(flow: Flow, chain: Chain) -> tuple[TopicParams, ...]:
    """Return the topics whose records reach a chain, in the order of the flow's sources."""
    edges = (chain.driving, *(side for join in chain.joins for side in join.sides))
    names = {source_of(flow, edge).name for edge in edges}
    return tuple(topic for topic in flow.sources if topic.name in names)


def number_of_state(state: int) -> int:
    """Return the number of the chain to which a state of that name belongs."""
    return state // STATES


def clocks(flow: Flow) -> dict[int, tuple[TopicParams, ...]]:
    """Return the topics that the watermark of each chain follows, by the number of the chain."""
    return {chain.number: topics_of(flow, chain) for chain in chains(flow)}


def _chain(flow: Flow, edge: Driving) -> Chain:
    ledgers = (each for each in flow.operators if isinstance(each, Ledger))
    return Chain(
        driving=edge,
        joins=tuple(join for join in joins(flow) if driving_of(flow, join) == edge),
        projections=tuple(each for each in projections(flow) if driving_of(flow, each) == edge),
        ledger=next((each for each in ledgers if driving_of(flow, each) == edge), None),
    )

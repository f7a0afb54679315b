"""The chains of a flow: which operators the rows of one edge from a Decode go through."""

from dataclasses import dataclass, replace
from typing import assert_never

from kaflow_engine.flow.decodes import clocks_of_sources
from kaflow_engine.flow.edges import Driving, Rows, Waiting
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import aggregates, operator_of, projections, projects_of, source_of
from kaflow_engine.flow.operators import (
    Aggregate,
    Decode,
    InChain,
    KeyedJoin,
    Ledger,
    Project,
)
from kaflow_engine.flow.sinks import Sink
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.flow.tables import Append, Materialize, TableJoin
from kaflow_engine.flow.timed import Runs, Throttle
from kaflow_engine.flow.transforms import Transform

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
    """Those of the joined rows, then those behind aggregates; each in the order of the outputs, and
    of the branches of their unions."""
    ledger: Ledger | None
    """None where rows of one driving record never part."""
    tables: tuple[Materialize | TableJoin, ...] = ()
    """Each behind those whose changes it takes; where there are any, `driving` is the edge of the
    first of them, and others may have edges of their own with the number of the chain."""
    transforms: tuple[Transform, ...] = ()
    """Each behind those whose rows it takes."""
    gathers: tuple[Aggregate | Runs | KeyedJoin, ...] = ()
    """What takes the rows of other chains, where there are any."""
    below: tuple[int, ...] = ()
    """The numbers of the chains whose rows it takes behind their groups or transforms: several that
    it gathers, or one whose rows look something up; `driving` is the edge of the first of them."""

    @property
    def number(self) -> int:
        """Its number, which stays as long as the pipeline has the chain."""
        return self.driving.chain

    @property
    def head(self) -> Project | Materialize | TableJoin | Aggregate | Runs | KeyedJoin:
        """The operator by which dead letters name it on their way."""
        first = (*self.projections[:1], *self.tables[:1])
        return first[0] if first else self.gathers[0]

    @property
    def ends(self) -> tuple[Project, ...]:
        """The projections of the joined rows, or of tables, for sinks and aggregates; of rows that
        are transformed first, those behind."""
        before = {each.id for each in (*self.joins, *self.tables)}
        entries = {name for each in self.transforms for name in each.inputs}
        rows_of = {each.id: each.rows for each in self.projections}

        def of_joined(rows: Driving | Rows) -> bool:
            return isinstance(rows, Driving) or rows.input in before

        for each in self.transforms:
            if any(of_joined(rows_of[name]) for name in each.inputs if name in rows_of):
                before.add(each.id)
        return tuple(e for e in self.projections if e.id not in entries and of_joined(e.rows))


def chains(flow: Flow) -> tuple[Chain, ...]:
    """Return the chains, in the order of the first projections of each; those last that are only
    looked up, or joined."""
    written = [project for project in projections(flow) if _is_written(flow, project)]
    tables = (each for each in flow.operators if isinstance(each, Materialize))
    joined = (each for each in aggregates(flow) if each.chain is not None and not each.is_table)
    edges: dict[int, Driving] = {}
    for operator in (*written, *projections(flow), *tables, *joined):
        edge = driving_of(flow, operator)
        edges.setdefault(edge.chain, edge)
    return tuple(_chain(flow, edge) for edge in edges.values())


def chain_of(flow: Flow, operator: InChain) -> Chain:
    """Return the chain to which an operator belongs."""
    return _chain(flow, driving_of(flow, operator))


def aggregates_of(flow: Flow, chain: Chain) -> tuple[Aggregate, ...]:
    """Return the aggregates of a chain."""
    return tuple(each for each in aggregates(flow) if driving_of(flow, each).chain == chain.number)


def chains_into(flow: Flow, sink: Sink) -> tuple[Chain, ...]:
    """Return the chains whose rows a sink takes: several where it writes a union."""
    return tuple(
        chain
        for chain in chains(flow)
        if any(project.id in sink.inputs for project in chain.projections)
    )


def driving_topics(flow: Flow, sink: Sink) -> tuple[TopicParams, ...]:
    """Return the topics whose records a sink has rows of; other topics are joined to them."""
    edges = [edge for chain in chains_into(flow, sink) for edge in edges_of(flow, chain)]
    names = {source_of(flow, edge).name for edge in edges}
    return tuple(topic for topic in flow.sources if topic.name in names)


def feeds(flow: Flow, chain: Chain) -> tuple[tuple[Sink, int], ...]:
    """Return what a chain feeds: outputs, each with the place of a branch of its union."""
    return tuple(
        (sink, branch)
        for sink in flow.sinks
        for branch, project in enumerate(projects_of(flow, sink))
        if project in chain.projections
    )


def driving_of(flow: Flow, operator: InChain) -> Driving:
    """Return the edge along which the records come that make an operator's rows: of a join of
    tables those of its left side."""
    match operator:
        case KeyedJoin(rows=Rows(input=name), chain=int(number), waiting=waiting):
            before = operator_of(flow, name)
            assert not isinstance(before, Decode)
            return of_groups(driving_of(flow, before), number, waiting)
        case KeyedJoin(rows=rows) | Project(rows=rows) | Materialize(rows=rows):
            if isinstance(rows, Driving):
                return rows
            before = operator_of(flow, rows.input)
        case (
            Ledger(inputs=inputs)
            | Throttle(inputs=inputs)
            | Append(inputs=inputs)
            | Transform(inputs=inputs)
        ):
            before = operator_of(flow, inputs[0])
        case Aggregate(inputs=inputs, chain=number) | Runs(inputs=inputs, chain=number):
            entry = operator_of(flow, inputs[0])
            assert not isinstance(entry, Decode)
            edge = driving_of(flow, entry)
            return edge if number is None else replace(edge, chain=number)
        case TableJoin(left=left, chain=number):
            side = operator_of(flow, left.input)
            assert not isinstance(side, Decode)
            edge = driving_of(flow, side)
            return edge if number is None else replace(edge, chain=number)
        case _:
            assert_never(operator)
    assert not isinstance(before, Decode)
    return driving_of(flow, before)


def of_groups(edge: Driving, number: int, waiting: Waiting | None) -> Driving:
    """Return the edge of rows of groups that something is joined to.

    Args:
        edge: Of the records below them.
        number: Of their chain.
        waiting: How they wait; None: whatever their records waited for before, they leave at once,
            or go nowhere.
    """
    wait = waiting or Waiting(ttl=0, emission="immediate", on_expiry="drop")
    return replace(
        edge,
        chain=number,
        emission=wait.emission,
        needs=None,
        ttl=wait.ttl,
        on_expiry=wait.on_expiry,
        reemit=False,
        waits=waiting is not None,
    )


def edges_of(flow: Flow, chain: Chain) -> tuple[Driving, ...]:
    """Return the edges along which records come that make rows of a chain: several of tables."""
    found = [each.rows for each in chain.tables if isinstance(each, Materialize)]
    own = [edge for edge in found if isinstance(edge, Driving)]
    if chain.below:
        own = [edge for each in chains_below(flow, chain) for edge in edges_of(flow, each)]
    return tuple(dict.fromkeys((*(() if chain.below else (chain.driving,)), *own)))


def chains_below(flow: Flow, chain: Chain) -> tuple[Chain, ...]:
    """Return the chains whose rows a chain gathers; none where it makes rows itself."""
    return tuple(_chain_numbered(flow, number) for number in chain.below)


def chains_beside(flow: Flow, chain: Chain) -> tuple[Chain, ...]:
    """Return the chains whose groups have rows that are events of the joins of a chain."""
    sides = (side for join in chain.joins for side in join.sides if side.role == "event")
    makes = (operator_of(flow, side.input) for side in sides)
    numbers = (driving_of(flow, each).chain for each in makes if not isinstance(each, Decode))
    return tuple(_chain_numbered(flow, number) for number in dict.fromkeys(numbers))


def topics_of(flow: Flow, chain: Chain) -> tuple[TopicParams, ...]:
    """Return the topics whose records reach a chain, by the clocks that it reads them by, in the
    order of the flow's sources."""
    sides = (side for join in chain.joins for side in join.sides)
    topics = (side for side in sides if isinstance(operator_of(flow, side.input), Decode))
    names = {source_of(flow, edge).clock_name for edge in (*edges_of(flow, chain), *topics)}
    for each in (*chains_below(flow, chain), *chains_beside(flow, chain)):
        names |= {topic.clock_name for topic in topics_of(flow, each)}
    return tuple(topic for topic in clocks_of_sources(flow) if topic.clock_name in names)


def rows_rest(edge: Driving, join: KeyedJoin) -> bool:
    """Tell whether rows of a driving edge rest in a join: waiting, or to meet others later."""
    waits = join.require is not None or (bool(join.inner) and edge.waits)
    return waits or bool(join.events) or edge.emission == "final" or edge.reemit


def number_of_state(state: int) -> int:
    """Return the number of the chain to which a state of that name belongs."""
    return state // STATES


def _is_written(flow: Flow, project: Project) -> bool:
    return any(project.id in sink.inputs for sink in flow.sinks)


def _chain(flow: Flow, edge: Driving) -> Chain:
    mine = [
        each
        for each in flow.operators
        if not isinstance(each, Decode) and driving_of(flow, each).chain == edge.chain
    ]
    tables = tuple(each for each in mine if isinstance(each, Materialize | TableJoin))
    may_have = (each for each in mine if isinstance(each, Aggregate | Runs | KeyedJoin))
    own = tuple(each for each in may_have if each.chain is not None)
    return Chain(
        driving=edge,
        joins=tuple(each for each in mine if isinstance(each, KeyedJoin)),
        projections=tuple(each for each in mine if isinstance(each, Project)),
        ledger=next((each for each in mine if isinstance(each, Ledger)), None),
        tables=tables,
        transforms=tuple(each for each in mine if isinstance(each, Transform)),
        gathers=own,
        below=_below(flow, own[0]) if own else (),
    )


def _below(flow: Flow, first: Aggregate | Runs | KeyedJoin) -> tuple[int, ...]:
    names = (first.rows.input,) if isinstance(first, KeyedJoin) else first.inputs
    before = (operator_of(flow, name) for name in names)
    made = (e for e in before if not isinstance(e, Decode | Ledger))
    return tuple(dict.fromkeys(driving_of(flow, each).chain for each in made))


def _chain_numbered(flow: Flow, number: int) -> Chain:
    every = (each for each in flow.operators if not isinstance(each, Decode))
    edges = (driving_of(flow, each) for each in every)
    return _chain(flow, next(edge for edge in edges if edge.chain == number))

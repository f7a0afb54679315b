"""What people call the chains of a flow: by the outputs that they feed, or by what reads their
rows."""

from kaflow_engine.flow.chains.chain import Chain, driving_of, feeds
from kaflow_engine.flow.edges import SideParams
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import operator_of, projects_of
from kaflow_engine.flow.operators import Aggregate, Decode, KeyedJoin
from kaflow_engine.flow.tables import TableJoin
from kaflow_engine.flow.timed import Runs


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
    parts = parts or [f"look-up {called}" for called in _looked_up(flow, chain)]
    parts = parts or [f"rows of {called}" for called in _gathered_by(flow, chain)]
    parts = parts or [f"rows of {called}" for called in _looking_up(flow, chain)]
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def chain_name(flow: Flow, chain: Chain) -> str:
    """Return what dead letters call a chain: its first output, `sales`, or a later branch of it, as
    projections are called: `sales#1` is the second one."""
    fed = feeds(flow, chain)
    if not fed:
        return next(iter(_looked_up(flow, chain)), chain.head.id)
    sink, branch = fed[0]
    return f"{sink.target}#{branch}" if branch else sink.target


def _looked_up(flow: Flow, chain: Chain) -> list[str]:
    """Return the ids of the tables of a chain that joins of others look up, or join."""
    others = [
        join
        for join in flow.operators
        if isinstance(join, KeyedJoin | TableJoin) and driving_of(flow, join).chain != chain.number
    ]
    sides = (side for join in others for side in join.sides)
    inputs = dict.fromkeys(
        side.input for side in sides if not isinstance(side, SideParams) or side.role != "event"
    )
    own = [
        each.id
        for each in flow.operators
        if not isinstance(each, Decode) and driving_of(flow, each).chain == chain.number
    ]
    return [name for name in inputs if name in own]


def _gathered_by(flow: Flow, chain: Chain) -> list[str]:
    """Return the ids of what gathers rows of a chain with those of others."""
    own = {each.id for each in chain.projections}
    return [
        each.id
        for each in flow.operators
        if isinstance(each, Aggregate | Runs) and own & {*each.inputs}
    ]


def _looking_up(flow: Flow, chain: Chain) -> list[str]:
    """Return the ids of what makes rows of a chain that drive joins of others, or are events of
    them."""
    joins = [each for each in flow.operators if isinstance(each, KeyedJoin)]
    names = [join.rows.input for join in joins if join.chain is not None]
    names += [side.input for join in joins for side in join.sides if side.role == "event"]
    before = (operator_of(flow, name) for name in dict.fromkeys(names))
    return [
        each.id
        for each in before
        if not isinstance(each, Decode) and driving_of(flow, each).chain == chain.number
    ]

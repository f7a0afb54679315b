"""What the state of an operator depends on, as a fingerprint.

Two operators of one fingerprint write and read the same entries: whether one may go on with the
state of the other needs no closer look. The closer look, at differences that do no harm, is
`plan.evolution`.
"""

import json
from dataclasses import asdict
from hashlib import sha256
from typing import Any, assert_never

from kaflow_engine.flow.chains.chain import Chain, chain_of
from kaflow_engine.flow.edges import Driving, Rows, SideParams
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import entries_of, joins_before, operator_of, source_of
from kaflow_engine.flow.operators import Aggregate, Decode, KeyedJoin, Ledger, Operator, Project
from kaflow_engine.flow.tables import Append, Materialize, TableJoin
from kaflow_engine.flow.timed import Runs, Throttle
from kaflow_engine.flow.transforms import Transform

_BESIDE = ("id", "state", "inputs", "each", "on_late", "exchange", "chain")
_OF_DRIVING = ("alias", "raw", "ttl", "emission", "on_expiry", "reemit")


def state_fingerprint(flow: Flow, operator: Operator) -> str | None:
    """Return the fingerprint of what an operator's state depends on, or of an Append or a Transform
    what its rows depend on; None of another one without state.

    The name of the state is no part of it, nor the number of partitions, nor other chains.
    """
    match operator:
        case Decode() | Project():
            return None
        case KeyedJoin(before=before, require=require, sides=sides):
            found: dict[str, Any] = {
                **_driving(flow, chain_of(flow, operator)),
                "key": operator.rows.key,
                "before": [asdict(column) for column in before],
                "require": require,
                "sides": [_side(flow, side) for side in sides],
                "passed": [len(join.parting) for join in joins_before(flow, operator)],
            }
        case Ledger():
            chain = chain_of(flow, operator)
            passed = [len(join.parting) for join in chain.joins]
            found = {**_driving(flow, chain), "passed": passed}
        case Aggregate():
            found = {**_own(operator), **_gathered(flow, operator)}
        case Materialize():
            found = {**_own(operator), **_taken(flow, operator.rows)}
        case TableJoin(left=left, right=right):
            sides = [{**asdict(side), "input": _below(flow, side.input)} for side in (left, right)]
            found = {**_own(operator), "left": sides[0], "right": sides[1]}
        case Append(inputs=inputs):
            before = operator_of(flow, inputs[0])
            found = {
                "deletes": operator.deletes,
                "rows": {**asdict(before), "id": None},
                "before": _before(flow, before),
            }
        case Transform(inputs=inputs):
            before = operator_of(flow, inputs[0])
            found = {
                "results": [asdict(column) for column in operator.results],
                "params": asdict(operator.params),
                "rows": {**asdict(before), "id": None},
                "before": _before(flow, before),
            }
        case Runs(columns=columns, per_partition=per_partition):
            found = {
                "columns": [asdict(column) for column in columns],
                "per_partition": per_partition,
                **_gathered(flow, operator),
            }
        case Throttle():
            found = {}  # keys and values as bytes, whatever they are of
        case _:
            assert_never(operator)
    text = json.dumps([operator.type, found], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def _own(operator: Aggregate | Materialize | TableJoin) -> dict[str, Any]:
    found = {name: value for name, value in asdict(operator).items() if name not in _BESIDE}
    if found.get("shard", "") is None:
        del found["shard"]  # as before there was one
    if found.get("timed") is False:
        del found["timed"]
    return found


def _gathered(flow: Flow, operator: Aggregate | Runs) -> dict[str, Any]:
    """Return what the rows that an operator gathers depend on, those of each branch of a union."""
    entries = entries_of(flow, operator)
    found = [({**asdict(each), "id": None}, _before(flow, each)) for each in entries]
    (rows, before), *others = found
    if not others:
        return {"rows": rows, "before": before}
    return {"rows": [rows for rows, _ in found], "before": [before for _, before in found]}


def _taken(flow: Flow, rows: Driving | Rows) -> dict[str, Any]:
    """Return what the rows of a table depend on."""
    match rows:
        case Driving():
            topic = source_of(flow, rows)
            return {"rows": [topic.name, topic.event_time, rows.alias, rows.filter]}
        case Rows(input=name):
            return {"rows": _below(flow, name)}
        case _:
            assert_never(rows)


def _below(flow: Flow, name: str) -> str | None:
    """Return the fingerprint of the operator that makes rows."""
    return state_fingerprint(flow, operator_of(flow, name))


def _driving(flow: Flow, chain: Chain) -> dict[str, Any]:
    edge, topic = asdict(chain.driving), source_of(flow, chain.driving)
    clock = [topic.name, topic.event_time]
    found = {**{name: edge[name] for name in _OF_DRIVING}, "topic": clock}
    return found if chain.driving.waits else {**found, "waits": False}


def _before(flow: Flow, project: Operator) -> str | None:
    """Return the fingerprint of the operator with a state whose rows a projection takes."""
    assert isinstance(project, Project)
    match project.rows:
        case Driving():
            return None
        case Rows(input=name):
            return _below(flow, name)
        case _:
            assert_never(project.rows)


def _side(flow: Flow, side: SideParams) -> dict[str, Any]:
    below = operator_of(flow, side.input)
    if isinstance(below, Decode):
        topic = source_of(flow, side)
        read: Any = [topic.name, topic.event_time]
    else:
        read = state_fingerprint(flow, below)
    found = {**asdict(side), "input": read}
    if side.role == "dimension":
        del found["ttl"]
    if side.lookup == "before":
        found["lookup"] = "current"  # both keep the same
    if side.lookup != "as_of":
        del found["keep"]
    if side.within is None:
        del found["within"]
    if side.rows is None:
        del found["rows"]
    return found

"""What the state of an operator depends on, as a fingerprint.

Two operators of one fingerprint write and read the same entries: whether one may go on with the
state of the other needs no closer look. The closer look, at differences that do no harm, is
`plan.evolution`.
"""

import json
from dataclasses import asdict
from hashlib import sha256
from typing import Any, assert_never

from kaflow_engine.flow.chains import Chain, chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import joins_before, source_of
from kaflow_engine.flow.operators import Decode, KeyedJoin, Ledger, Operator, Project, SideParams

_OF_DRIVING = ("alias", "raw", "ttl", "emission", "on_expiry", "reemit")


def state_fingerprint(flow: Flow, operator: Operator) -> str | None:
    """Return the fingerprint of what an operator's state depends on; None of one without state.

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
                "passed": [len(join.events) for join in joins_before(flow, operator)],
            }
        case Ledger():
            chain = chain_of(flow, operator)
            passed = [len(join.events) for join in chain.joins]
            found = {**_driving(flow, chain), "passed": passed}
        case _:
            assert_never(operator)
    text = json.dumps([operator.type, found], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def _driving(flow: Flow, chain: Chain) -> dict[str, Any]:
    edge, topic = asdict(chain.driving), source_of(flow, chain.driving)
    clock = [topic.name, topic.event_time]
    return {**{name: edge[name] for name in _OF_DRIVING}, "topic": clock}


def _side(flow: Flow, side: SideParams) -> dict[str, Any]:
    topic = source_of(flow, side)
    found = {**asdict(side), "input": [topic.name, topic.event_time]}
    if side.role == "dimension":
        del found["ttl"]
    if side.lookup != "as_of":
        del found["keep"]
    return found

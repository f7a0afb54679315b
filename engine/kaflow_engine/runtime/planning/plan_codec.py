"""Plans as JSON, so that an open batch runs again with the plan it was begun with."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from kaflow_engine.errors import StateError
from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import aggregates, joins, with_avro_ids
from kaflow_engine.flow.operators import Aggregate, KeyedJoin, Operator
from kaflow_engine.flow.origins.hybrid import HybridParams
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.flow.sources import SourceParams, TopicParams
from kaflow_engine.flow.tables import TableJoin
from kaflow_engine.flow.timed import Runs
from kaflow_engine.flow.transforms import HandlerParams, Transform
from kaflow_engine.plan.evolution.chain import document_mark, flow_of_chain, is_chain
from kaflow_engine.state.log.batch_log import plan_mark

_TRAVELLING: dict[str, Any] = {"shard": True, "exchange": True}
"""Where all rows travel to their groups, aggregates are written as before others could be."""
_OF_TOPICS: dict[str, Any] = {"left": {"filter"}, "right": {"filter"}}
"""Where only tables of topics are joined, plans are written as before groups were."""
_OF_ITS_ROWS: dict[str, Any] = {"chain": True}
"""Where operators belong to the chains of their rows, plans are written as before others could."""
_OF_RECORDS: dict[str, Any] = {"waiting": True, "delay": True}
"""Where no events of joins are rows of groups, joins are written as before they could be."""
_OF_ONE_CLOCK: dict[str, Any] = {"clock": True}
"""Where a topic has one event time, which bears its name, plans are written as before others could
have several."""
_ONE_ROW: dict[str, Any] = {"sides": {"__all__": {"rows"}}}
"""Where look-ups find one row, plans are written as before they found others."""
_OF_HOME: dict[str, Any] = {"cluster": True}
"""What is in no cluster that has a name is written as before there were several."""
_WITHOUT_KEY_SCHEMA: dict[str, Any] = {"key_schema": True, "key_schema_id": True}
"""Topics whose keys have no schema are written as before keys could."""
_OF_BEGINNINGS = ("consumer_group", "auto_offset_reset", "positions")
"""Plans that leave these to the configuration are written as before they could say them."""
_IN_TOPIC: dict[str, Any] = {"letters": True}
_WITHOUT_AGGREGATES: dict[str, Any] = {"retired_states": True}
_WITHOUT_BEGINNINGS: dict[str, Any] = {"begins": True}
_WITHOUT_SIDE_OUTPUTS: dict[str, Any] = {"side_outputs": True}


def plan_text(plan: Flow) -> str:
    """Return a plan as JSON."""
    numbered = any(chain.number for chain in chains(plan)) or plan.retired
    travelling = all(each.exchange and each.shard is None for each in aggregates(plan))
    joined = [each for each in plan.operators if isinstance(each, TableJoin)]
    grouped = any(e.chain is not None or e.left.filter or e.right.filter for e in joined)
    may_have = [e for e in plan.operators if isinstance(e, Aggregate | Runs | KeyedJoin)]
    apart = any(each.chain is not None for each in may_have)
    several_clocks = any(topic.clocks for topic in plan.sources)
    timed = {
        place: {
            **({"clock": True} if not topic.clock else {}),
            **({"clocks": True} if not topic.clocks else {}),
            **({"cluster": True} if not topic.cluster else {}),
            **({"topic": True} if not topic.topic else {}),
            **_of_origin(topic.connector),
        }
        for place, topic in enumerate(plan.sources)
    }
    waiting = all(chain.driving.waits for chain in chains(plan))
    of_edges = {name for name, said in (("chain", numbered), ("waits", not waiting)) if not said}
    several_rows = any(side.rows is not None for join in joins(plan) for side in join.sides)
    of_operators = {
        **({"rows": of_edges} if of_edges else {}),
        **(_TRAVELLING if travelling else {}),
        **({} if grouped else _OF_TOPICS),
        **({} if grouped or apart else _OF_ITS_ROWS),
        **({} if several_clocks else _OF_ONE_CLOCK),
        **({} if several_rows else _ONE_ROW),
    }
    of_their_rows = {
        plan.operators.index(each): {
            **_without_chain(each),
            **_without_events(each),
            **_one_by_one(each),
        }
        for each in may_have
    }
    by_operator = {**({"__all__": of_operators} if of_operators else {}), **of_their_rows}
    sinks = {
        place: left
        for place, sink in enumerate(plan.sinks)
        if isinstance(sink, TopicSink) and (left := _of_topic(sink))
    }
    left_out: dict[str, Any] = {
        "sources": timed,
        **({"sinks": sinks} if sinks else {}),
        **({} if plan.cluster else _OF_HOME),
        **({} if plan.letters else _IN_TOPIC),
        **{name: True for name in _OF_BEGINNINGS if getattr(plan, name) is None},
        **({} if numbered else {"retired": True}),
        **({"operators": by_operator} if by_operator else {}),
        **({} if plan.retired_states else _WITHOUT_AGGREGATES),
        **({} if plan.begins else _WITHOUT_BEGINNINGS),
        **({} if plan.side_outputs else _WITHOUT_SIDE_OUTPUTS),
    }
    return _adapter().dump_json(plan, exclude=left_out).decode()


def _without_chain(operator: Aggregate | Runs | KeyedJoin) -> dict[str, Any]:
    return _OF_ITS_ROWS if operator.chain is None else {}


def _without_events(operator: Aggregate | Runs | KeyedJoin) -> dict[str, Any]:
    of_records = isinstance(operator, KeyedJoin) and not (operator.waiting or operator.delay)
    return _OF_RECORDS if of_records else {}


def _one_by_one(operator: Aggregate | Runs | KeyedJoin) -> dict[str, Any]:
    """Return what is left out of runs that are asked one by one, as all were before."""
    alone = isinstance(operator, Runs) and operator.together is None
    return {"together": True} if alone else {}


def _of_topic(sink: TopicSink) -> dict[str, Any]:
    keys = {} if sink.key_schema is not None else _WITHOUT_KEY_SCHEMA
    return {**keys, **({} if sink.cluster else _OF_HOME)}


def _of_origin(origin: SourceParams | None) -> dict[str, Any]:
    """Return what is left out of a source in phases, which is written as before it had clusters."""
    match origin:
        case None:
            return {"connector": True}
        case HybridParams(cluster=cluster, handover=handover, avro=avro):
            more = {"query": handover.query, "start_at": handover.start_at} if handover else {}
            left_out = {name: True for name, said in more.items() if said is None}
            here: dict[str, Any] = {} if cluster else {"cluster": True}
            here |= {} if avro else {"avro": True}
            return {"connector": here | ({"handover": left_out} if left_out else {})}
        case _:
            return {}


def plan_of(text: str) -> Flow:
    """Return the plan of what `plan_text` gave, of this version or an earlier one.

    Raises:
        StateError: Another version wrote it, and this one cannot read it.
    """
    try:
        found: dict[str, Any] = json.loads(text)
        return _adapter().validate_python(flow_of_chain(found) if is_chain(found) else found)
    except (ValueError, LookupError) as error:
        raise StateError(
            "the plan of the state cannot be read: another version of kaflow wrote it",
            hint="run that version, or give the pipeline a new `id:` to start afresh",
        ) from error


def made_lenient(old: Flow, new: Flow) -> Flow:
    """Return the plan that a batch was begun with, without the refusals that its author took back,
    with handlers that ask where the author says now, and with the side outputs of now.

    A task that refused has delivered nothing, so nothing that is there already changes; what a
    handler was answered before is kept.
    """
    by_name = {topic.name: topic for topic in new.sources}
    transforms = [each for each in new.operators if isinstance(each, Transform)]
    handlers = {e.name: e.params for e in transforms if isinstance(e.params, HandlerParams)}

    def lenient(topic: TopicParams) -> TopicParams:
        now = by_name.get(topic.name, topic)
        error = now.on_error if topic.on_error == "fail" else topic.on_error
        return replace(topic, on_error=error, schema_id=now.schema_id)

    def asking(operator: Operator) -> Operator:
        if isinstance(operator, Transform) and isinstance(operator.params, HandlerParams):
            return replace(operator, params=handlers.get(operator.name, operator.params))
        return operator

    return replace(
        old,
        sources=tuple(lenient(topic) for topic in old.sources),
        operators=tuple(asking(operator) for operator in old.operators),
        side_outputs=new.side_outputs,
    )


def fingerprint(plan: Flow) -> str:
    """Return what two plans share only if they are equal."""
    return plan_mark(plan_text(plan))


def decided(plan: Flow) -> str:
    """Return the fingerprint that decisions name: of a plan without what only a registry knows."""
    sources = tuple(replace(topic, schema_id=None) for topic in plan.sources)
    return document_mark(with_avro_ids(replace(plan, sources=sources), {}, {}))


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Flow)

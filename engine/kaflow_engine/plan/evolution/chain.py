"""A flow as a document: how plans are compared, and how those of one chain were once stored.

A chain has a driving side and steps of joins; outputs finish its rows. Where there is one chain,
the form stays as it is: plans in states of earlier versions have it, and decisions name its
fingerprint.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from kaflow_engine.flow.chains.chain import Chain, chains
from kaflow_engine.flow.chains.names import chain_called
from kaflow_engine.flow.decodes import decode_id
from kaflow_engine.flow.edges import SideParams
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import operator_of, projects_of, source_of, throttle_of
from kaflow_engine.flow.numbers import join_id, ledger_id, state_in
from kaflow_engine.flow.operators import Decode, KeyedJoin, Project
from kaflow_engine.flow.sinks import ConnectorSink, Sink, TableSink, TopicSink, home_of
from kaflow_engine.flow.tables import Materialize
from kaflow_engine.flow.timed import Throttle
from kaflow_engine.model.key_formats import TEXT
from kaflow_engine.plan.evolution.aggregates import documents_of
from kaflow_engine.plan.evolution.clocks import read_by, with_times
from kaflow_engine.plan.evolution.timed import documents_of_runs, documents_of_transforms
from kaflow_engine.plan.planner.outputs.sink import sink_id
from kaflow_engine.state.log.batch_log import plan_mark

Document: TypeAlias = Mapping[str, Any]  # a plan as JSON

_OF_DRIVING = ("alias", "topic", "columns", "filter", "key", "needs", "raw", "ttl")
_OF_ROWS = ("emission", "on_expiry", "reemit")
_OF_FLOW = (
    "dead_letter_topic",
    "delivery",
    "dimensions_first",
    "max_dead_letters",
    "max_dead_rate",
    "backfill",
)
_OF_TOPIC = ("avro_schema", "avro_id", "key_in_value")
ADDED_TO_TOPICS: Mapping[str, Any] = {
    "record_columns": (),
    "on_null": "skip",
    "key_format": "text",
    "key_type": TEXT,
    "connector": None,
    **dict.fromkeys(("cluster", "topic"), ""),
}
ADDED_TO_FINISH: Mapping[str, Any] = {
    "key_in_value": True,
    "every": None,
    "key_format": "text",
    **dict.fromkeys(("key_schema", "headers", "operation")),
}
ADDED_TO_SIDES: Mapping[str, Any] = {"within": None, "rows": None}
ADDED_TO_STEPS: Mapping[str, Any] = {"time": None}  # what stored chains lack, and its meaning
CALLED_ALONE = ""  # the only chain of a document


def document_of(flow: Flow) -> dict[str, Any]:
    """Return a flow as a document: with a list of chains where there are several, or a union."""
    found, whole = chains(flow), asdict(flow)
    one = len(found) == 1 and all(len(projects_of(flow, sink)) == 1 for sink in flow.sinks)
    rows = asdict(found[0].driving)
    return {
        "pipeline": flow.pipeline,
        "name": flow.name,
        "topics": [
            _without(ADDED_TO_TOPICS, with_times(topic, flow.sources[number]))
            for number, topic in enumerate(whole["sources"])
        ],
        **(
            _rows_of(flow, found[0])
            if one
            else {"chains": [_numbered(flow, chain) for chain in found]}
        ),
        **({"aggregates": grouped} if (grouped := documents_of(flow)) else {}),
        **({"runs": found_runs} if (found_runs := documents_of_runs(flow)) else {}),
        **({"transforms": transforms} if (transforms := documents_of_transforms(flow)) else {}),
        **_ends(flow, several=not one or len(flow.sinks) > 1),
        **{name: rows[name] for name in _OF_ROWS},
        "partitions": flow.partitions,
        **({"ledger": found[0].ledger is not None} if one else {}),
        **({"last_exchange": flow.sinks[0].exchange} if one and len(flow.sinks) == 1 else {}),
        **{name: whole[name] for name in _OF_FLOW},
        **home_of(flow.cluster, flow.letters),
        **({"chain": found[0].number} if one and found[0].number else {}),
    }


def document_mark(flow: Flow) -> str:
    """Return the fingerprint of a flow's document."""
    text = json.dumps(document_of(flow), separators=(",", ":"), ensure_ascii=False)
    return plan_mark(text)


def chains_of(plan: Document) -> dict[int, Document]:
    """Return the chains of a document, by number."""
    several = plan.get("chains")
    if several is not None:
        return {chain["number"]: chain for chain in several}
    own = {name: plan[name] for name in ("driving", "steps", "ledger") if name in plan}
    return {plan.get("chain", 0): {**own, "called": CALLED_ALONE}}


def _rows_of(flow: Flow, chain: Chain) -> dict[str, Any]:
    """Return how the rows of a chain come about."""
    edge, steps = chain.driving, chain.joins
    within = {} if edge.waits else {"within": "0s"}
    rows = {**asdict(edge), "topic": source_of(flow, edge).index}
    own = {**{name: rows[name] for name in _OF_DRIVING}, **within, **read_by(flow, edge.input)}
    return {
        "driving": own,
        "steps": [
            _step(flow, step, next_one)
            for step, next_one in zip(steps, (*steps[1:], None), strict=False)
        ],
    }


def _numbered(flow: Flow, chain: Chain) -> dict[str, Any]:
    return {
        "number": chain.number,
        "called": chain_called(flow, chain),
        **_rows_of(flow, chain),
        "ledger": chain.ledger is not None,
        **({"below": list(chain.below)} if chain.below else {}),
    }


def is_chain(plan: Document) -> bool:
    """Tell whether a stored plan is the document of a chain rather than a flow."""
    return "steps" in plan


def flow_of_chain(plan: Document) -> dict[str, Any]:
    """Return the JSON of the flow that a stored chain stands for."""
    topics = [topic["name"] for topic in plan["topics"]]
    before = plan["driving"]
    rows: dict[str, Any] = {
        "type": "driving",
        "input": decode_id(topics[before["topic"]]),
        **{name: before[name] for name in _OF_DRIVING if name != "topic"},
        **{name: plan[name] for name in _OF_ROWS},
    }
    found: list[dict[str, Any]] = [
        {"type": "decode", "id": decode_id(topic), "source": i} for i, topic in enumerate(topics)
    ]
    passed: list[str] = []
    for number, step in enumerate(plan["steps"], 1):
        join: dict[str, Any] = {
            "type": "keyed_join",
            "id": join_id(0, number),
            "state": state_in(0, number),
            "rows": rows,
            "before": step["before"],
            "sides": [
                {**side, "input": decode_id(topics[side["topic"]])} for side in step["sides"]
            ],
            "require": step["require"],
        }
        found.append(join)
        passed.append(join["id"])
        rows = {"type": "rows", "input": join["id"], "key": step["next_key"]}
    finish = plan["finish"]
    project = f"project:{plan['name']}"
    columns, where = finish["outputs"], finish["where"]
    found.append(
        {"type": "project", "id": project, "rows": rows, "where": where, "columns": columns}
    )
    written = [project]
    if plan["ledger"]:
        state, inputs = state_in(0, len(plan["steps"]) + 1), [*passed, project]
        found.append({"type": "ledger", "id": ledger_id(0), "state": state, "inputs": inputs})
        written.append(ledger_id(0))
    return {
        **{name: plan[name] for name in ("pipeline", "name", "partitions")},
        "sources": plan["topics"],
        "operators": found,
        "sinks": [_sink(finish, written, plan["last_exchange"])],
        **{name: plan[name] for name in _OF_FLOW if name in plan},
    }


def _without(added: Mapping[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Leave out what says what it said before there was a field for it."""
    return {name: part[name] for name in part if name not in added or part[name] != added[name]}


def _step(flow: Flow, step: KeyedJoin, following: KeyedJoin | None) -> dict[str, Any]:
    found = {
        "before": _columns(step.before),
        "sides": [_side(flow, side) for side in step.sides],
        "require": step.require,
        "time": step.time,
        "after": _columns(following.before) if following else [],
        "next_key": following.rows.key if following else None,
    }
    return _without(ADDED_TO_STEPS, found)


def _side(flow: Flow, side: SideParams) -> dict[str, Any]:
    found = asdict(side)
    del found["input"]
    alias = found.pop("alias")
    if side.rows is not None:
        found["rows"] = ", ".join(f"{column.name} {column.type}" for column in side.rows)
    clock = read_by(flow, side.input)
    read = _read(flow, side)
    return {"alias": alias, "topic": read, **clock, **_without(ADDED_TO_SIDES, found)}


def _read(flow: Flow, side: SideParams) -> int | str:
    """Return which topic a side reads, or what it calls the rows that it looks up; tables have
    their chain in their ids, whose number another plan may change, and not their state."""
    match operator_of(flow, side.input):
        case Decode(source=source):
            return flow.sources[source].index
        case Materialize(id=name, state=state):
            return f"{name.partition('#')[0]} ({state})"
        case below:
            return below.id


def _columns(columns: Sequence[Any]) -> list[dict[str, Any]]:
    return [asdict(column) for column in columns]


def ends_of(plan: Document) -> dict[str, Document]:
    """Return what finishes the rows of each output in a document, by the name of its target."""
    several = plan.get("outputs")
    if several is not None:
        return dict(several)
    finish = plan["finish"]
    sink = finish.get("sink", {})
    return {finish["topic"] or sink.get("target") or finish["table"]["name"]: finish}


def _ends(flow: Flow, *, several: bool) -> dict[str, Any]:
    ends = {
        sink: _finish(projects_of(flow, sink), sink, throttle_of(flow, sink)) for sink in flow.sinks
    }
    if not several:
        return {"finish": next(iter(ends.values()))}
    return {
        "outputs": {sink.target: {**end, "exchange": sink.exchange} for sink, end in ends.items()}
    }


def _finish(projects: Sequence[Project], sink: Sink, throttle: Throttle | None) -> dict[str, Any]:
    topic = sink if isinstance(sink, TopicSink) else None
    table = asdict(sink.table) if isinstance(sink, TableSink) else None
    other = _without_rows(asdict(sink)) if isinstance(sink, ConnectorSink) else None
    selected = [_selected(project) for project in projects]
    found = {
        **(selected[0] if len(selected) == 1 else {"branches": selected}),
        "key": sink.key,
        "topic": topic.target if topic else None,
        "format": topic.format if topic else "texts",
        "avro_schema": topic.avro_schema if topic else None,
        "avro_id": topic.avro_id if topic else None,
        "table": table and _without({"grouped": False}, table),
        "key_in_value": topic.key_in_value or topic.takes_bytes if topic else True,
        "key_format": topic.key_format if topic else "text",
        "key_schema": topic.key_schema if topic else None,
        "headers": topic.headers if topic else None,
        "operation": topic.operation if topic else None,
        **({"sink": other} if other else {}),
        "every": None if throttle is None else throttle.every,
    }
    return _without(ADDED_TO_FINISH, found)


def _without_rows(sink: dict[str, Any]) -> dict[str, Any]:
    """Return what a connector receives, beside what an end says of its rows."""
    apart = ("type", "id", "inputs", "exchange", "key", "columns")
    return {name: value for name, value in sink.items() if name not in apart}


def _selected(project: Project) -> dict[str, Any]:
    """Return what a SELECT does with finished rows."""
    return {
        **({"unnests": [asdict(each) for each in project.unnests]} if project.unnests else {}),
        "where": project.where,
        "outputs": [[asdict(column), sql] for column, sql in project.columns],
    }


def _sink(finish: Document, inputs: Sequence[str], exchange: bool) -> dict[str, Any]:
    to = {"inputs": inputs, "exchange": exchange, "key": finish["key"]}
    table = finish.get("table")
    if table is not None:
        return {"type": "table", "id": sink_id(table["name"]), **to, "table": table}
    optional = {name: finish[name] for name in _OF_TOPIC if name in finish}
    topic, form = finish["topic"], finish["format"]
    return {"type": "topic", "id": sink_id(topic), **to, "topic": topic, "format": form, **optional}

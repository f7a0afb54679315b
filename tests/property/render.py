"""A scenario as an author would write it: the pipeline mapping, and a case of a case file."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import yaml

from tests.property.scenario import Scenario, Writing
from tests.property.sql import Queries
from tests.reference.conditions import Column
from tests.reference.pipeline import DAY, OraclePipeline, Topic
from tests.reference.records import Record


def to_mapping(scenario: Scenario) -> dict[str, Any]:
    """Write the pipeline file; TTLs other than the default become overrides."""
    pipeline, default_ttl = scenario.pipeline, scenario.default_ttl
    tables = written_tables(scenario)
    emission: dict[str, Any] = {"type": pipeline.emission}
    if pipeline.emission == "smart":
        emission |= {"require": list(pipeline.require), "on_expiry": pipeline.on_expiry}
    if any(group.ended for write in pipeline.writes for group in write.groups):
        emission["late_updates"] = True
    overrides = {
        topic.name: _duration(topic.ttl)
        for topic in pipeline.topics.values()
        if not topic.dimension and topic.ttl != default_ttl
    }
    mapping: dict[str, Any] = {
        "name": "random",
        **_outputs(pipeline, scenario.writing),
        "emission": emission,
        "state": {
            "events": {"default_ttl": _duration(default_ttl), "overrides": overrides},
            "dimensions": [
                topic.name
                for topic in pipeline.topics.values()
                if topic.dimension and topic.name not in tables
            ],
        },
        "topics": {
            topic.name: _topic(topic) | tables.get(topic.name, {})
            for topic in pipeline.topics.values()
        },
        "dimensions_first": False,
        "partitions": 2,
    }
    if scenario.writing.implied:
        del mapping["emission"]
    if aggregation := _aggregation(pipeline):
        mapping["aggregation"] = aggregation
    if pipeline.within is not None:
        mapping["within"] = {
            name: _duration(ms) for name, ms in asdict(pipeline.within).items() if ms is not None
        }
    if pipeline.latest:
        mapping["row_time"] = "latest"
    if pipeline.reemit:
        mapping["on_dimension_update"] = "reemit"
    return mapping


def written_tables(scenario: Scenario) -> dict[str, dict[str, Any]]:
    """Return the dimensions that are written as tables, with how their key is written."""
    pipeline, found = scenario.pipeline, dict[str, dict[str, Any]]()
    for topic in pipeline.topics.values():
        if topic.primary:
            primary = {} if topic.primary == ("_key",) else {"primary_key": [*topic.primary]}
            found[topic.name] = {"table": True, **primary}
    if not scenario.writing.tables or scenario.writing.right or pipeline.reemit:
        return found
    driving = {chain.driving_topic for chain in pipeline.chains}
    by_dimension = {
        join.topic
        for chain in pipeline.chains
        if pipeline.topics[chain.driving_topic].dimension
        for join in chain.joins
    }
    for topic in pipeline.topics.values():
        keys = {join.own for join in pipeline.sides_of(topic.name)}
        if not topic.dimension or topic.lookup != "current":
            continue
        if topic.name in driving or topic.name in by_dimension:
            continue
        if topic.key is None and len(keys) == 1 and len(own := keys.pop()) == 1:
            (term,) = own
            if isinstance(term, Column) and term.name in (*topic.columns, "_key"):
                primary = {} if term.name == "_key" else {"primary_key": [term.name]}
                found[topic.name] = {"table": True, **primary}
    return found


def _outputs(pipeline: OraclePipeline, writing: Writing) -> dict[str, Any]:
    written = Queries(pipeline, writing)
    given = [
        written.given[number]
        | {"topic": branches[0].topic, "format": "json"}
        | ({"key": branches[0].key} if branches[0].key else {})
        | ({"coalesce": "none"} if any(each.each for each in branches[0].groups) else {})
        for number, branches in enumerate(pipeline.outputs)
    ]
    below: dict[str, Any] = {}
    if written.relations:
        below = {"relations": {n: {"query": q} for n, q in written.relations.items()}}
    if len(given) == 1 and "query" in given[0]:
        return {**below, "query": given[0].pop("query"), "output": given[0]}
    return {**below, "outputs": given}


def _aggregation(pipeline: OraclePipeline) -> dict[str, Any]:
    """Write what holds for groups; what has no effect is refused."""
    found: dict[str, Any] = {}
    for group in (group for write in pipeline.writes for group in write.groups):
        if group.window is not None and group.grace:
            found["grace"] = _duration(group.grace)
        if group.window is None and group.ttl is not None:
            found["ttl"] = _duration(group.ttl)
    return found


def to_case(scenario: Scenario, name: str = "random") -> dict[str, Any]:
    """Write a case that expects what the oracle says."""
    said = scenario.interpret()
    given: list[Any] = []
    for place, item in enumerate(scenario.items):
        if isinstance(item, int):
            given.append({"advance": _duration(item)})
            continue
        if place and not isinstance(scenario.items[place - 1], int):
            given.append("batch")
        given.extend(_given(record) for record in item)
    case: dict[str, Any] = {"case": name, "pipeline": to_mapping(scenario), "given": given}
    if scenario.start is not None:
        case["start"] = _instant(scenario.start)
    if scenario.bounded:
        case["bounded"] = True
    if said.stops:
        return case | {"expect_error": "bad record", "cuts": "given"}
    return case | {
        "expect": [
            {
                "topic": row.topic,
                "key": None if row.key is None else str(row.key),
                "value": None if row.value is None else dict(row.value),
                **({"headers": dict(row.headers)} if row.headers else {}),
            }
            for row in said.rows
        ],
        "expect_dead_letters": [
            {"topic": letter.topic, "offset": letter.offset, "phase": letter.phase}
            for letter in said.dead_letters
        ],
        "expect_counters": dict(said.counters),
        "cuts": "given",
    }


def to_yaml(case: Mapping[str, Any]) -> str:
    """Print a case as it would stand in a case file."""
    return yaml.safe_dump([dict(case)], sort_keys=False, allow_unicode=True, width=200)


def _given(record: Record) -> dict[str, Any]:
    given: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "at": _instant(record.ts),
        "key": record.key,
    }
    if record.headers:
        given["headers"] = dict(record.headers)
    if record.raw is not None:
        return given | {"raw_base64": b64encode(record.raw).decode()}
    return given | {"value": None if record.value is None else dict(record.value)}


def _topic(topic: Topic) -> dict[str, Any]:
    spec: dict[str, Any] = {"columns": dict(topic.columns)}
    if topic.event_time is not None:
        spec["event_time"] = topic.event_time
    if topic.lateness:
        spec["lateness"] = _duration(topic.lateness)
    if topic.idle_timeout != 30_000:
        spec["idle_timeout"] = _duration(topic.idle_timeout)
    if topic.max_future != DAY:
        spec["max_future"] = _duration(topic.max_future)
    if topic.lookup == "as_of":
        spec["lookup"] = "as_of"
    if topic.history is not None:
        spec["history"] = _duration(topic.history)
    if topic.key is not None:
        spec["key"] = topic.key
    if topic.on_error != "dead_letter":
        spec["on_error"] = topic.on_error
    if topic.on_null != "skip":
        spec["on_null"] = topic.on_null
    return spec


def _duration(ms: int) -> str:
    return f"{ms}ms"


def _instant(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03}Z"

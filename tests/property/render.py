"""A scenario as an author would write it: SQL, the pipeline mapping, and a case of a case file."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, assert_never

import yaml

from tests.property.scenario import Scenario
from tests.reference.conditions import AllOf, AnyOf, Column, Compare, Condition, IsNull, Negated
from tests.reference.pipeline import DAY, OraclePipeline, Output, Topic
from tests.reference.records import Record


def to_sql(pipeline: OraclePipeline) -> str:
    """Write the query."""
    select = ",\n  ".join(f"{_output(output)} AS {output.name}" for output in pipeline.select)
    lines = [f"SELECT\n  {select}", f'FROM "{pipeline.driving_topic}" {pipeline.driving}']
    for join in pipeline.joins:
        on = " AND ".join(
            f"{_column(left)} = {join.alias}.{right}"
            if place % 2 == 0
            else f"{join.alias}.{right} = {_column(left)}"
            for place, (left, right) in enumerate(join.on)
        )
        kind = "INNER" if join.inner else "LEFT"
        lines.append(f'{kind} JOIN "{join.topic}" {join.alias} ON {on}')
    if pipeline.where:
        lines.append("WHERE " + " AND ".join(_condition(part) for part in pipeline.where))
    return "\n".join(lines)


def to_mapping(pipeline: OraclePipeline, default_ttl: int) -> dict[str, Any]:
    """Write the pipeline file; TTLs other than the default become overrides."""
    emission: dict[str, Any] = {"type": pipeline.emission}
    if pipeline.emission == "smart":
        emission |= {"require": list(pipeline.require), "on_expiry": pipeline.on_expiry}
    overrides = {
        topic.name: _duration(topic.ttl)
        for topic in pipeline.topics.values()
        if not topic.dimension and topic.ttl != default_ttl
    }
    mapping: dict[str, Any] = {
        "name": "random",
        "query": to_sql(pipeline),
        "output": {"topic": pipeline.output_topic, "format": "json", "key": pipeline.key},
        "emission": emission,
        "state": {
            "events": {"default_ttl": _duration(default_ttl), "overrides": overrides},
            "dimensions": [topic.name for topic in pipeline.topics.values() if topic.dimension],
        },
        "topics": {topic.name: _topic(topic) for topic in pipeline.topics.values()},
        "dimensions_first": False,
    }
    if pipeline.reemit:
        mapping["on_dimension_update"] = "reemit"
    return mapping


def to_case(scenario: Scenario, default_ttl: int, name: str = "random") -> dict[str, Any]:
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
    case: dict[str, Any] = {
        "case": name,
        "pipeline": to_mapping(scenario.pipeline, default_ttl),
        "given": given,
        "expect": [
            {
                "topic": scenario.pipeline.output_topic,
                "key": None if row.key is None else str(row.key),
                "value": dict(row.value),
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
    if scenario.start is not None:
        case["start"] = _instant(scenario.start)
    if scenario.bounded:
        case["bounded"] = True
    return case


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
    if record.raw is not None:
        return given | {"raw": record.raw.decode()}
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
    return spec


def _output(output: Output) -> str:
    column = _column(output.column)
    if output.function == "coalesce":
        return f"coalesce({column}, {_literal(output.literal)})"
    return f"upper({column})" if output.function == "upper" else column


def _condition(condition: Condition) -> str:
    match condition:
        case Compare(column, op, literal):
            return f"{_column(column)} {op} {_literal(literal)}"
        case IsNull(column, negated):
            return f"{_column(column)} IS {'NOT ' if negated else ''}NULL"
        case AnyOf(parts):
            return "(" + " OR ".join(_condition(part) for part in parts) + ")"
        case AllOf(parts):
            return "(" + " AND ".join(_condition(part) for part in parts) + ")"
        case Negated(part):
            return f"NOT ({_condition(part)})"
        case _:
            assert_never(condition)


def _column(column: Column) -> str:
    return f"{column.alias}.{column.name}"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return str(value) if isinstance(value, int | float) else f"'{value}'"


def _duration(ms: int) -> str:
    return f"{ms}ms"


def _instant(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03}Z"

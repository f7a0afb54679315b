"""A scenario as an author would write it: SQL, the pipeline mapping, and a case of a case file."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, assert_never

import yaml

from tests.property.scenario import Scenario, Writing
from tests.reference.conditions import (
    AllOf,
    AnyOf,
    Call,
    Column,
    Compare,
    Condition,
    IsNull,
    Negated,
    Term,
    aliases_of,
)
from tests.reference.pipeline import DAY, Join, OraclePipeline, Output, Topic, Write
from tests.reference.records import Record

ELEMENTS = ("u", "v")
"""The aliases of unnested lists."""

Named = Callable[[Column], str]
"""How a query names a column."""


def _column(column: Column) -> str:
    return f"{column.alias}.{column.name}"


def _named(column: Column) -> str:
    return f"{column.alias}{'.' if column.alias in ELEMENTS else '_'}{column.name}"


RELATION = "joined"
"""What a relation that holds the joins is called."""


def to_sql(pipeline: OraclePipeline, writing: Writing, write: Write) -> str:
    """Write the query of an output."""
    lines = [_selected(write.select)]
    first = f'"{pipeline.driving_topic}" {pipeline.driving}'
    if writing.right:
        (join,) = pipeline.joins
        lines.append(f'FROM "{join.topic}" {join.alias}')
        lines.append(f"RIGHT JOIN {first}{_on(join, writing)}")
    else:
        lines.append(f"FROM {first}")
        for join in pipeline.joins:
            kind = "INNER" if join.inner else "LEFT"
            lines.append(f'{kind} JOIN "{join.topic}" {join.alias}{_on(join, writing)}')
    return "\n".join([*lines, *_unnests(write), *_where(write.where)])


def of_relation(pipeline: OraclePipeline) -> Write:
    """Return what a relation holds that all outputs can read: their columns, and their filters."""
    common = tuple(c for c in pipeline.common_where() if not aliases_of(c) & set(ELEMENTS))
    rest = [replace(each, where=_without(each.where, common)) for each in pipeline.writes]
    columns = sorted({column for each in rest for column in each.columns()}, key=repr)
    return Write(
        select=tuple(Output(name=f"{c.alias}_{c.name}", term=c) for c in columns), where=common
    )


def _over_relation(relation: Write, write: Write) -> dict[str, str]:
    """Return an output that reads the relation: all of it, or by a query."""
    where = _without(write.where, relation.where)
    if write.select == relation.select and not where and not write.unnests:
        return {"from": RELATION}
    lines = [_selected(write.select, _named), f"FROM {RELATION}"]
    lines += [*_unnests(write, _named), *_where(where, _named)]
    return {"query": "\n".join(lines)}


def _without(where: tuple[Condition, ...], gone: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple(condition for condition in where if condition not in gone)


def to_mapping(scenario: Scenario) -> dict[str, Any]:
    """Write the pipeline file; TTLs other than the default become overrides."""
    pipeline, default_ttl = scenario.pipeline, scenario.default_ttl
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
        **_outputs(pipeline, scenario.writing),
        "emission": emission,
        "state": {
            "events": {"default_ttl": _duration(default_ttl), "overrides": overrides},
            "dimensions": [topic.name for topic in pipeline.topics.values() if topic.dimension],
        },
        "topics": {topic.name: _topic(topic) for topic in pipeline.topics.values()},
        "dimensions_first": False,
        "partitions": 2,
    }
    if pipeline.reemit:
        mapping["on_dimension_update"] = "reemit"
    return mapping


def _outputs(pipeline: OraclePipeline, writing: Writing) -> dict[str, Any]:
    relation = of_relation(pipeline)
    queries = [
        _over_relation(relation, write)
        if writing.relation
        else {"query": to_sql(pipeline, writing, write)}
        for write in pipeline.writes
    ]
    targets = [
        {"topic": write.topic, "format": "json"} | ({"key": write.key} if write.key else {})
        for write in pipeline.writes
    ]
    below: dict[str, Any] = {}
    if writing.relation:
        below = {"relations": {RELATION: {"query": to_sql(pipeline, writing, relation)}}}
    if len(targets) == 1 and "query" in queries[0]:
        return {**below, **queries[0], "output": targets[0]}
    return {**below, "outputs": [q | t for q, t in zip(queries, targets, strict=True)]}


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


def _on(join: Join, writing: Writing) -> str:
    if join.alias in writing.using:
        return f" USING ({', '.join(_name(right) for _, right in join.on)})"
    parts = [
        f"{_term(right)} = {_term(left)}"
        if place % 2 != writing.turned
        else f"{_term(left)} = {_term(right)}"
        for place, (left, right) in enumerate(join.on)
    ]
    return " ON " + " AND ".join(parts)


def _name(term: Term) -> str:
    return term.column.name if isinstance(term, Call) else term.name


def _selected(select: tuple[Output, ...], named: Named = _column) -> str:
    columns = ",\n  ".join(f"{_term(each.term, named)} AS {each.name}" for each in select)
    return f"SELECT\n  {columns}"


def _unnests(write: Write, named: Named = _column) -> list[str]:
    return [
        f"CROSS JOIN unnest({named(each.list)}) AS {each.alias}({each.name})"
        for each in write.unnests
    ]


def _where(where: tuple[Condition, ...], named: Named = _column) -> list[str]:
    return ["WHERE " + " AND ".join(_condition(part, named) for part in where)] if where else []


def _term(term: Term, named: Named = _column) -> str:
    if isinstance(term, Column):
        return named(term)
    column = named(term.column)
    match term.function:
        case "coalesce":
            return f"coalesce({column}, {_literal(term.literal)})"
        case "upper":
            return f"upper({column})"
        case "plus":
            return f"{column} + {_literal(term.literal)}"
        case "integer":
            return f"CAST({column} AS BIGINT)"
        case _:
            assert_never(term.function)


def _condition(condition: Condition, named: Named) -> str:
    match condition:
        case Compare(column, op, literal):
            return f"{named(column)} {op} {_literal(literal)}"
        case IsNull(column, negated):
            return f"{named(column)} IS {'NOT ' if negated else ''}NULL"
        case AnyOf(parts):
            return "(" + " OR ".join(_condition(part, named) for part in parts) + ")"
        case AllOf(parts):
            return "(" + " AND ".join(_condition(part, named) for part in parts) + ")"
        case Negated(part):
            return f"NOT ({_condition(part, named)})"
        case _:
            assert_never(condition)


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

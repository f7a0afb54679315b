"""Small pipelines, planned."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import build_plan

EVENTS = (Column("id", "VARCHAR"), Column("n", "VARCHAR"))
PROFILES = (Column("id", "VARCHAR"), Column("tier", "VARCHAR"))


def filter_plan(name: str, events: str, output: str) -> Flow:
    """A pipeline without state."""
    query = f"SELECT e.id, e.n FROM \"{events}\" e WHERE e.n <> 'no'"
    return _plan({"name": name, "query": query, **_rest(output)}, {events: EVENTS})


def lookup_plan(name: str, events: str, profiles: str, output: str, smart: bool = False) -> Flow:
    """Events with what a dimension says about them; under `smart` they wait for it."""
    query = f'SELECT e.id, e.n, p.tier FROM "{events}" e LEFT JOIN "{profiles}" p ON e.id = p.id'
    data = {"name": name, "query": query, **_rest(output), "state": {"dimensions": [profiles]}}
    if smart:
        data["emission"] = {"type": "smart", "require": ["tier"], "on_expiry": "emit"}
    return _plan(data, {events: EVENTS, profiles: PROFILES})


def grouped_plan(name: str, events: str, output: str) -> Flow:
    """Counts by key."""
    query = f'SELECT id, count(*) AS n FROM "{events}" GROUP BY id'
    return _plan({"name": name, "query": query, **_rest(output)}, {events: EVENTS})


def counts_plan(
    name: str,
    events: str,
    output: str,
    per: str | None = None,
    form: str = "json",
    relations: Mapping[str, Any] = MappingProxyType({}),
) -> Flow:
    """Counts of each three events: of all partitions, or of each one; of the last of other
    relations, if there are some."""
    runs = {"from": [events, *relations][-1], "batch": {"size": 3, **({"per": per} if per else {})}}
    runs["query"] = "SELECT count(*) AS n FROM batch"
    return _plan(
        {
            "name": name,
            "topics": {events: {"format": form}},
            "relations": {**relations, "counts": runs},
            "query": "SELECT n FROM counts",
            "output": {"topic": output, "format": "json"},
        },
        {events: EVENTS},
    )


def _rest(output: str) -> dict[str, object]:
    return {
        "output": {"topic": output, "format": "json", "key": "id"},
        "dead_letters": {"topic": f"{output}.dead"},
        "partitions": 2,
    }


def _plan(data: dict[str, object], schemas: dict[str, tuple[Column, ...]]) -> Flow:
    return build_plan(PipelineSpec.model_validate(data), Config(), schemas).plan

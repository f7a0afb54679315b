"""Pairs of pipeline files, as fixtures hold them, and their plans."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kaflow_engine.errors import Location
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.sql.pipeline import pipeline_topics

FIXTURES = Path(__file__).parents[2] / "fixtures" / "evolution"
COLUMNS = {
    "events": {"id": "VARCHAR", "n": "INTEGER", "other": "VARCHAR"},
    "names": {"id": "VARCHAR", "name": "VARCHAR", "tier": "VARCHAR"},
    "places": {"id": "VARCHAR", "city": "VARCHAR"},
    "clicks": {"id": "VARCHAR", "page": "VARCHAR", "n": "INTEGER"},
}


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is written instead, and what comes of it."""

    title: str
    query: str
    before: dict[str, object] = field(default_factory=dict)
    after: dict[str, object]
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    """Declared again."""
    status: str = ""
    reason: str = ""
    """One of the reasons, whole; empty: there is none."""


def load_fixture(name: str) -> list[dict[str, Any]]:
    """Return the entries of a file of fixtures."""
    return yaml.load((FIXTURES / name).read_text(), yaml.CSafeLoader)


CHANGES = [Change(**entry) for entry in load_fixture("changes.yaml")]


def plan_of(change: Change, *, after: bool) -> Flow:
    """Return the plan before or after a change."""
    given: dict[str, object] = {
        "name": "p",
        "query": change.query,
        "output": {"topic": "o", "key": "id"},
        "state": {"dimensions": ["names", "places"]},
        "partitions": 2,
        **change.before,
        **(change.after if after else {}),
    }
    given = {key: value for key, value in given.items() if value is not None}
    at = Location("p.yaml")
    topics = pipeline_topics(pipeline_from_mapping({**given, "state": {}}, at, {}))
    state = dict(given["state"]) if isinstance(given["state"], dict) else {}
    state["dimensions"] = [topic for topic in state.get("dimensions", ()) if topic in topics]
    given["state"] = state
    if isinstance(given.get("topics"), dict):
        given["topics"] = {name: own for name, own in given["topics"].items() if name in topics}
    spec = pipeline_from_mapping(given, at, {})
    columns = {**COLUMNS, **(change.columns if after else {})}
    schemas = {t: tuple(Column(n, kind) for n, kind in columns[t].items()) for t in topics}
    return build_plan(spec, Config(), schemas).plan

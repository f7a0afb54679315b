"""Plans a pipeline file with the columns that its state already knows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kaflow_engine.errors import ModelError
from kaflow_engine.model.columns import Column, widened
from kaflow_engine.model.config import Config
from kaflow_engine.model.record_columns import RECORD_COLUMNS
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.evolution.start_decision import (
    StoredState,
    known_record_columns,
    pinned_schema_ids,
)
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.sql.pipeline import pipeline_topics
from kaflow_engine.sql.scope import NeedsSchema

Resolve = Callable[[Sequence[str]], Mapping[str, tuple[Column, ...]]]
"""Finds the columns of topics, in the schema registry or in a sample."""


def plan_with_state(
    spec: PipelineSpec, config: Config, stored: StoredState, resolve: Resolve | None
) -> PlannedPipeline:
    """Plan a pipeline with columns that are declared, pinned by its state, or looked up.

    Args:
        spec: What the author wrote.
        config: For defaults.
        stored: What its state directory holds.
        resolve: None: only columns that are declared or pinned.

    Raises:
        NeedsSchema: Columns are wanted that only `resolve` could find.
        ModelError: Mistakes in the file.
        SourceError: Columns cannot be found.
    """
    names = pipeline_topics(spec)
    watched = any(topic.on_schema_change == "fail" for topic in spec.topics.values())
    ids = pinned_schema_ids(stored) if watched else {}
    pinned = stored.columns
    declared = {name: declared_columns(spec, name) for name in names}
    known = {**pinned, **{name: own for name, own in declared.items() if own is not None}}
    schemas = {name: known[name] for name in names if name in known}

    def look_up(topics: Sequence[str]) -> Mapping[str, tuple[Column, ...]]:
        if not topics:
            return {}
        if resolve is None:
            raise NeedsSchema(list(topics), spec.place("query"))
        return resolve(topics)

    schemas |= look_up([name for name in names if name not in schemas])
    from_state = [name for name in names if declared[name] is None and name in pinned]
    growing = [n for n in from_state if spec.topic(n).on_schema_change == "add_nullable"]
    if resolve is not None:
        schemas |= widened(schemas, look_up(growing))
    try:
        planned = build_plan(spec, config, schemas)
    except ModelError:
        if not from_state:
            raise
        # The state pins the columns that the query used; a changed query may want others too.
        planned = build_plan(spec, config, schemas | widened(schemas, look_up(from_state)))
    else:
        named = _named_now(planned, stored, from_state) if resolve is not None else {}
        if named:  # a column of the topic itself may have that name, and wins
            found = look_up(list(named))
            own = {t: tuple(c for c in found[t] if c.name.lower() in named[t]) for t in named}
            planned = build_plan(spec, config, schemas | widened(schemas, own))
    return with_schema_ids(planned, ids)


def _named_now(
    planned: PlannedPipeline, stored: StoredState, topics: Sequence[str]
) -> dict[str, set[str]]:
    """Return, by topic, the record columns that are used and were not by the plan of the state,
    of those that an author may name."""
    mine = {column.name for column in RECORD_COLUMNS}
    used = {t.name: mine & {c.name for c in t.record_columns} for t in planned.plan.sources}
    used = {name: used[name] for name in topics if used.get(name)}
    before = known_record_columns(stored) if used else {}
    new = {name: columns - before.get(name, set()) for name, columns in used.items()}
    return {name: columns for name, columns in new.items() if columns}


def with_schema_ids(planned: PlannedPipeline, ids: Mapping[str, int]) -> PlannedPipeline:
    """Return the plan with the schemas that others are compared with, where that is asked for."""
    topics = tuple(
        replace(topic, schema_id=ids[topic.name])
        if topic.name in ids and planned.spec.topic(topic.name).on_schema_change == "fail"
        else topic
        for topic in planned.plan.sources
    )
    return replace(planned, plan=replace(planned.plan, sources=topics))

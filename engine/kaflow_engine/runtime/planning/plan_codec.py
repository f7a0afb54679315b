"""Plans as JSON, so that an open batch runs again with the plan it was begun with."""

from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from kaflow_engine.flow.plan import Plan, TopicParams
from kaflow_engine.state.log.batch_log import plan_mark


def plan_text(plan: Plan) -> str:
    """Return a plan as JSON."""
    return _adapter().dump_json(plan).decode()


def plan_of(text: str) -> Plan:
    """Return the plan of what `plan_text` gave."""
    return _adapter().validate_json(text)


def made_lenient(old: Plan, new: Plan) -> Plan:
    """Return the plan that a batch was begun with, without the refusals that its author took back.

    A task that refused has delivered nothing, so nothing that is there already changes.
    """
    by_name = {topic.name: topic for topic in new.topics}

    def lenient(topic: TopicParams) -> TopicParams:
        now = by_name.get(topic.name, topic)
        error = now.on_error if topic.on_error == "fail" else topic.on_error
        return replace(topic, on_error=error, schema_id=now.schema_id)

    return replace(old, topics=tuple(lenient(topic) for topic in old.topics))


def fingerprint(plan: Plan) -> str:
    """Return what two plans share only if they are equal."""
    return plan_mark(plan_text(plan))


def decided(plan: Plan) -> str:
    """Return the fingerprint that decisions name: of a plan without what only a registry knows."""
    topics = tuple(replace(topic, schema_id=None) for topic in plan.topics)
    return fingerprint(replace(plan, topics=topics, finish=replace(plan.finish, avro_id=None)))


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Plan)

"""Fields that registered schemas let be NULL, where a pipeline asks for it."""

from kaflow_engine.formats.contract import format_of
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.sources.nulls import Nullable
from kaflow_engine.plan.planner.planned import PlannedPipeline


def nullable_fields(planned: PlannedPipeline, registry: Registry | None) -> Nullable:
    """Return what the newest schemas of topics say, of those that decide where NULL may stand.

    A topic whose columns are declared is as its file says.

    Args:
        planned: With the topics that it reads.
        registry: None: the configuration names none.

    Raises:
        SourceError: The registry does not answer.
        ModelError: A schema cannot be read.
    """
    spec, found = planned.spec, dict[str, frozenset[str]]()
    if registry is None:
        return found
    for topic in planned.plan.sources:
        form = format_of(topic.format)
        asked = topic.name in spec.nulls.topics and spec.topic(topic.name).columns is None
        newest = None
        if asked and form.traits.registered:
            newest = registry.latest(f"{topic.name}-value")
        if newest is not None:
            found[topic.name] = form.nullable(newest.schema)
    return found

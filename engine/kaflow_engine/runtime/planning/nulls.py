"""Fields that registered schemas let be NULL, where a pipeline asks for it."""

from kaflow_engine.connectors.kafka.clusters.reached import Clusters
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.sources.nulls import Nullable
from kaflow_engine.plan.planner.planned import PlannedPipeline


def nullable_fields(planned: PlannedPipeline, clusters: Clusters) -> Nullable:
    """Return what the newest schemas of topics say, of those that decide where NULL may stand.

    A topic whose columns are declared is as its file says.

    Args:
        planned: With the topics that it reads.
        clusters: Those of the configuration, with their registries.

    Raises:
        SourceError: The registry does not answer.
        ModelError: A schema cannot be read.
    """
    spec, found = planned.spec, dict[str, frozenset[str]]()
    for topic in planned.plan.sources:
        form = format_of(topic.format)
        asked = topic.name in spec.nulls.topics and spec.topic(topic.name).columns is None
        newest, registry = None, clusters[topic.cluster].registry
        if asked and form.traits.registered and registry is not None:
            newest = registry.latest(f"{topic.place.topic}-value")
        if newest is not None:
            found[topic.name] = form.nullable(newest.schema)
    return found

"""A pipeline file to the plan of its preview: each node has a sink that only shows its rows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.sinks import Sink, TopicSink
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.preview.nodes import (
    Hidden,
    Node,
    apart,
    named,
    output_nodes,
    relation_nodes,
    with_relations,
)
from kaflow_engine.testing.local.shown import as_topic

Planner = Callable[[PipelineSpec], PlannedPipeline]
"""Plans a pipeline, with the columns of what it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewPlan:
    """What runs, and what is shown of it."""

    planned: PlannedPipeline
    """Its sinks are topics with JSON values, which no one writes."""
    nodes: tuple[Node, ...]
    hidden: tuple[Hidden, ...] = ()
    """Relations whose rows are only seen in what reads them."""

    def sink_of(self, node: Node) -> TopicSink:
        """Return what the rows of a node go to."""
        found = (sink for sink in self.planned.plan.sinks if sink.target == node.target)
        return next(sink for sink in found if isinstance(sink, TopicSink))


def plan_preview(spec: PipelineSpec, node: str | None, planner: Planner) -> PreviewPlan:
    """Plan what shows the rows of one node, or of all.

    Args:
        spec: What the author wrote, which is sound.
        node: The name of a relation or an output; None: all of them.
        planner: Plans it.

    Raises:
        UnknownName: There is no such node.
        ModelError: The node cannot be shown by itself, or the columns of an input do not fit.
        SourceError: The columns of an input cannot be found.
    """
    shown = named(spec, (*relation_nodes(spec), *output_nodes(spec)), node)
    hidden: tuple[Hidden, ...] = ()
    try:
        planned = planner(with_relations(spec, shown))
    except ModelError:
        shown, hidden = apart(spec, shown, planner)  # seldom, and as often as there are relations
        if not shown:
            raise hidden[0].why from None
        planned = planner(with_relations(spec, shown))
    return PreviewPlan(planned=_that_shows(planned), nodes=shown, hidden=hidden)


def _that_shows(planned: PlannedPipeline) -> PlannedPipeline:
    """Return a plan that writes nothing: all rows leave as JSON, and packages see none of them."""
    sinks = tuple(
        replace(as_topic(sink), format="json", avro_schema=None, avro_id=None, **_own_key(sink))
        for sink in planned.plan.sinks
    )
    return replace(planned, plan=replace(planned.plan, sinks=sinks, side_outputs=()))


def _own_key(sink: Sink) -> dict[str, Any]:
    """Return how a key is shown that a registry would have the schema of."""
    if not isinstance(sink, TopicSink) or sink.key_schema is None:
        return {}
    return {"key_format": "json", "key_schema": None, "key_schema_id": None}

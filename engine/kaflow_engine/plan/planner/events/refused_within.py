"""What `within` cannot say of look-ups: `0s` is all that it may be."""

from collections.abc import Iterator, Sequence

from kaflow_engine.errors import ModelError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.events.matching import AT_ONCE
from kaflow_engine.plan.planner.roles import TopicRole
from kaflow_engine.sql.shape import QueryShape


def wrong_within(
    spec: PipelineSpec, shapes: Sequence[QueryShape], roles: Sequence[TopicRole]
) -> Iterator[ModelError]:
    """Yield what `within` cannot say of queries that look tables and dimensions up.

    Args:
        spec: What the author wrote, as it counts for these queries.
        shapes: What they read and join.
        roles: The topics.
    """
    if spec.within is None or not shapes:
        return
    place, emission = spec.place("within"), spec.emission.type
    if spec.within != AT_ONCE:
        topic, own = shapes[0].driving.topic, shapes[0].said_at
        said = next(role.said_by(own).ttl_from for role in roles if role.name == topic)
        yield ModelError(
            "'within' of a look-up can only be 0s: a row without a match is filtered then",
            place,
            f"write within: 0s; or remove it: rows of '{topic}' wait as long as {said} says",
        )
    elif not any(join.kind == "INNER" for shape in shapes for join in shape.joins):
        yield ModelError(
            "'within: 0s' has no effect: what a LEFT JOIN looks up is NULL where it is not there",
            place,
            "remove it; or write INNER JOIN, so that rows without a match are filtered",
        )
    elif emission in ("smart", "final"):
        yield ModelError(
            f"'within: 0s' filters rows that have no match yet, and {emission} emission lets them "
            "wait",
            place,
            "remove it, or emission.type",
        )
    elif spec.on_dimension_update == "reemit":
        yield ModelError(
            "'within: 0s' filters rows that have no match yet, and 'on_dimension_update: reemit' "
            "forms rows again",
            place,
            "remove one of the two",
        )

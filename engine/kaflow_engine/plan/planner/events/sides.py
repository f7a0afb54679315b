"""Which joined sides are events, and where rows of one driving record part."""

from collections.abc import Sequence

from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.roles import TopicRole
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.sql.shape import Expr, QueryShape


def event_aliases(shape: QueryShape, roles: Sequence[TopicRole]) -> frozenset[str]:
    """Return the joined sides that are events."""
    dimensions = {role.name for role in roles if role.dimension}
    topics = (s.alias for s in shape.read[1:] if not s.table and s.topic not in dimensions)
    return frozenset((*topics, *(s.alias for s in shape.sources[1:] if s.once)))


def left_events(shape: QueryShape, roles: Sequence[TopicRole]) -> frozenset[str]:
    """Return the joined sides that are events and need not match."""
    left = {join.alias for join in shape.joins if join.kind in ("LEFT", "ANTI")}
    return event_aliases(shape, roles) & left


def parts_early(
    spec: PipelineSpec,
    shape: QueryShape,
    steps: Sequence[KeyStep],
    roles: Sequence[TopicRole],
    where: Sequence[Expr],
    fails: bool,
) -> bool:
    """Tell whether rows of one driving record part, and may come to different ends afterwards.

    Args:
        spec: What the author wrote.
        shape: What the query says.
        steps: Joins by key.
        roles: The topics.
        where: Filters of the finished row.
        fails: The SQL may fail on some of them.
    """
    several = {join.alias for join in shape.joins if join.several}
    parting = event_aliases(shape, roles) | several
    if not any(step.aliases & parting for step in steps[:-1]):
        return False
    waits = spec.emission.type != "immediate" or any(s.inner for s in steps)
    return waits or bool(where) or fails

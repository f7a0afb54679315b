"""The joins of a query as `kaflow explain` shows them."""

from collections.abc import Sequence

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import joins
from kaflow_engine.plan.explain.explanation import SidePart, StepPart
from kaflow_engine.plan.planner.topics import TopicRole
from kaflow_engine.sql.shape import Expr, JoinShape, QueryShape


def steps_of(
    shape: QueryShape | None, roles: Sequence[TopicRole], plan: Flow | None
) -> tuple[StepPart, ...]:
    """Return the joins by key, with the sides of each."""
    groups: dict[tuple[str, ...], list[JoinShape]] = {}
    if shape is None:
        return ()
    if plan is not None:
        by_alias = {join.alias: join for join in shape.joins}
        for number, operator in enumerate(joins(plan)):
            together = [by_alias[side.alias] for side in operator.sides]
            groups[(str(number), *_key(together[0]))] = together
    else:
        for join in shape.joins:
            groups.setdefault(("", *_key(join)), []).append(join)
    needs = [operator.require for operator in joins(plan)] if plan else [None] * len(groups)
    dimensions = {role.name for role in roles if role.dimension}
    return tuple(
        StepPart(
            key=_key(together[0]),
            sides=tuple(_side(shape, join, dimensions) for join in together),
            inner=tuple(join.alias for join in together if join.kind == "INNER"),
            require=tuple(_conditions(need)),
        )
        for together, need in zip(groups.values(), needs, strict=True)
    )


def _key(join: JoinShape) -> tuple[str, ...]:
    return tuple(sorted(text_of(pair.outer) for pair in join.keys))


def _conditions(need: str | None) -> list[str]:
    parts = need.split(" AND ") if need else []
    texts = [part.removesuffix(" IS NOT NULL").replace('"', "") for part in parts]
    return [text[1:-1] if text.startswith("(") and text.endswith(")") else text for text in texts]


def _side(shape: QueryShape, join: JoinShape, dimensions: set[str]) -> SidePart:
    source = shape.source(join.alias)
    return SidePart(
        alias=join.alias,
        topic=source.topic,
        kind=join.kind,
        role="dimension" if source.topic in dimensions else "event",
        on=tuple(f"{text_of(pair.outer)} = {text_of(pair.inner)}" for pair in join.keys),
        filter=tuple(text_of(part) for part in source.filter),
    )


def text_of(expr: Expr) -> str:
    """Return an expression as it is shown."""
    return expr.sql.replace('"', "")

"""What is asked of joins and outputs together, and cannot be done."""

from collections.abc import Hashable, Sequence

from kaflow_engine.errors import ModelError, SqlError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.steps import KeyStep, event_aliases
from kaflow_engine.plan.planner.topics import TopicRole
from kaflow_engine.sql.shape import Expr, QueryShape


def require_one_chain(spec: PipelineSpec, shapes: Sequence[QueryShape]) -> None:
    """Refuse outputs whose rows come from other topics, or from other joins.

    Raises:
        SqlError: with the way out.
    """
    first, *others = spec.writes
    for write, shape in zip(others, shapes[1:], strict=True):
        if _chain(shape) != _chain(shapes[0]):
            raise SqlError(
                f"'{write.output.target}' joins other topics than '{first.output.target}', "
                "or joins them otherwise",
                spec.place(*write.query_at),
                "let both read the relation that holds the joins, or write two pipelines",
            )


def refuse_chains(
    spec: PipelineSpec, shape: QueryShape, steps: Sequence[KeyStep], roles: Sequence[TopicRole]
) -> None:
    """Refuse final emission where a side's records would be gone before the decision.

    Raises:
        SqlError: with the way out.
    """
    if spec.emission.type == "final" and len(steps) > 1 and event_aliases(shape, roles):
        raise SqlError(
            "final emission with event sides works over one join key only",
            spec.place("emission", "type"),
            "split the pipeline in two, or use smart emission",
        )


def refuse_reemit(spec: PipelineSpec, steps: int) -> None:
    """Refuse `on_dimension_update: reemit` where rows cannot be formed again in one place.

    Raises:
        ModelError: with the way out.
    """
    if spec.on_dimension_update != "reemit":
        return
    place = spec.place("on_dimension_update")
    if len(spec.writes) > 1:
        raise ModelError(
            "'on_dimension_update: reemit' works with one output only",
            place,
            "write a pipeline for each output, or remove it",
        )
    if steps > 1:
        raise ModelError(
            "'on_dimension_update: reemit' works over one join key only",
            place,
            "split the pipeline in two, or remove it",
        )
    if spec.emission.type == "final":
        raise ModelError(
            "'on_dimension_update: reemit' contradicts final emission, which decides once",
            place,
            "use immediate or smart emission, or remove it",
        )


def _chain(shape: QueryShape) -> Hashable:
    """Return what a query reads and joins, wherever it stands in a file."""
    return (
        tuple((each.alias, each.topic, _texts(each.filter)) for each in shape.sources),
        tuple(
            (
                each.alias,
                each.kind,
                tuple((pair.outer.sql, pair.inner.sql) for pair in each.keys),
            )
            for each in shape.joins
        ),
    )


def _texts(parts: Sequence[Expr]) -> tuple[str, ...]:
    return tuple(part.sql for part in parts)

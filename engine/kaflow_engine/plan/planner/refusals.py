"""What is asked of chains, joins and outputs together, and cannot be done."""

from collections.abc import Sequence

from kaflow_engine.errors import ModelError, SqlError
from kaflow_engine.model.pipelines.own_settings import as_said_by
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.events.sides import event_aliases
from kaflow_engine.plan.planner.roles import TopicRole
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.sql.chain_shapes import ChainShape
from kaflow_engine.sql.shape import QueryShape


def refuse_final(
    spec: PipelineSpec, shape: QueryShape, steps: Sequence[KeyStep], roles: Sequence[TopicRole]
) -> None:
    """Refuse final emission of a chain in which a side's records would be gone before the decision,
    or its rows part before it.

    Raises:
        SqlError: with the way out.
    """
    if spec.emission.type != "final" or len(steps) < 2:
        return
    if event_aliases(shape, roles):
        raise SqlError(
            "final emission with event sides works over one join key only",
            spec.place("emission", "type"),
            "split the pipeline in two, or use smart emission",
        )
    several = next((join.alias for join in shape.joins if join.several), None)
    if several is not None:
        raise SqlError(
            f"final emission with a look-up by other columns than the key ('{several}') works over "
            "one join key only",
            spec.place("emission", "type"),
            "split the pipeline in two, or use smart emission",
        )


def refuse_reemit(spec: PipelineSpec, chains: Sequence[ChainShape], steps: int) -> None:
    """Refuse `on_dimension_update: reemit` where rows cannot be formed again in one place.

    Args:
        spec: What the author wrote.
        chains: What its queries read and join.
        steps: The greatest number of join keys of a chain.

    Raises:
        ModelError: with the way out.
    """
    if spec.on_dimension_update != "reemit":
        return
    place = spec.place("on_dimension_update")
    for join in (join for chain in chains for join in chain.shape.joins if join.several):
        raise ModelError(
            f"'on_dimension_update: reemit' forms a row again, and '{join.alias}' is looked up by "
            "other columns than its key: a record has as many rows as it finds there",
            place,
            "remove it; or declare topics: <topic>: table: true for each topic of the join, whose "
            "rows then change with either one",
        )
    if len(spec.writes) > 1:
        raise ModelError(
            "'on_dimension_update: reemit' works with one output only",
            place,
            "write a pipeline for each output, or remove it",
        )
    if sum(len(chain.branches) for chain in chains) > 1:
        raise ModelError(
            "'on_dimension_update: reemit' does not work with UNION ALL",
            place,
            "write a pipeline for each SELECT, all to the same topic, or remove it",
        )
    if steps > 1:
        raise ModelError(
            "'on_dimension_update: reemit' works over one join key only",
            place,
            "split the pipeline in two, or remove it",
        )
    said = as_said_by(spec, chains[0].shape.said_at).emission.type
    if said in ("on_match", "final"):
        raise ModelError(
            f"'on_dimension_update: reemit' contradicts {said} emission, which decides once",
            place,
            "use immediate or smart emission, or remove it",
        )


def wrong_roles(spec: PipelineSpec, chains: Sequence[ChainShape]) -> list[ModelError]:
    """Return an error for each dimension whose records make rows elsewhere: dimensions come first,
    whatever their time is, and rows leave in the order of time.
    """
    found: list[ModelError] = []
    for i, name in enumerate(spec.state.dimensions):
        joining = {chain.number for chain in chains if name in _joined(chain)}
        driving = ((chain.number, chain.shape.driving) for chain in chains)
        driven = {number for number, each in driving if each.topic == name and not each.table}
        if any(driving != joined for driving in driven for joined in joining):
            found.append(
                ModelError(
                    f"'{name}' is a dimension in one query, and another one makes rows of its "
                    "records",
                    spec.place("state", "dimensions", i),
                    "write two pipelines, or remove it here: it is then joined as events",
                )
            )
    return found


def _joined(chain: ChainShape) -> set[str]:
    return {source.topic for source in chain.shape.sources[1:] if not source.table}


def wrong_tables(spec: PipelineSpec, chains: Sequence[ChainShape]) -> list[ModelError]:
    """Return an error for each table whose rows come from records of several topics."""
    found: list[ModelError] = []
    for output, write in enumerate(spec.writes):
        if write.output.table is None:
            continue
        driving = {
            chain.shape.driving.topic
            for chain in chains
            if any(each.output == output and not each.is_looked_up for each in chain.branches)
        }
        if len(driving) > 1:
            names = " and ".join(f"'{name}'" for name in sorted(driving))
            found.append(
                ModelError(
                    f"table '{write.output.table}' would hold rows of {names}: each row names its "
                    "record by partition and offset, not by topic",
                    spec.place(*write.at, "table"),
                    "write a table for each, or write the union to a topic, and that topic into "
                    "the table",
                )
            )
    return found

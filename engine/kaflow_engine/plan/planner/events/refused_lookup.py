"""What `lookup: before` has no effect on, or cannot say; and so of dynamic tables."""

from collections.abc import Iterator, Sequence

from kaflow_engine.errors import ModelError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.events.matching import emission_of
from kaflow_engine.plan.planner.roles import TopicRole
from kaflow_engine.sql.chain_shapes import ChainShape
from kaflow_engine.sql.shape import JoinShape, QueryShape, SourceShape
from kaflow_engine.sql.syntax import at_line


def wrong_lookup(spec: PipelineSpec, shapes: Sequence[QueryShape]) -> Iterator[ModelError]:
    """Yield why records cannot see tables without what they change themselves.

    Args:
        spec: What the author wrote, as it counts for these queries.
        shapes: What they read and join.
    """
    if spec.lookup != "before":
        return
    place = spec.place("lookup")
    events = [shape for shape in shapes if not shape.is_table]
    own = [(shape.driving, fed) for shape in events for fed in _feeding(shape)]
    if not own:
        yield ModelError(
            "'lookup: before' has no effect: no query looks up a table that its own records change",
            place,
            "remove it, or write it at the query that looks the table up",
        )
    elif any(_clock(spec, fed) != _clock(spec, driving) for driving, fed in own):
        yield ModelError(
            "'lookup: before' needs one event time of the records that look a table up and change "
            "it",
            place,
            "give both readings of the topic the same event_time, or remove it",
        )
    elif spec.emission.type == "final":
        yield ModelError(
            "'lookup: before' contradicts final emission, which looks when the time is up",
            place,
            "use another emission, or remove it",
        )
    elif spec.on_dimension_update == "reemit":
        yield ModelError(
            "'lookup: before' contradicts 'on_dimension_update: reemit', which forms rows again",
            place,
            "remove one of the two",
        )


def wrong_asked(
    spec: PipelineSpec, chains: Sequence[ChainShape], roles: Sequence[TopicRole]
) -> Iterator[ModelError]:
    """Yield why records cannot ask dynamic tables as these were before what they add themselves.

    Args:
        spec: What the author wrote, as it counts for these queries.
        chains: What they read and join.
        roles: The topics.
    """
    for chain in (chain for chain in chains if not chain.shape.is_table):
        shape = chain.shape
        start = spec.place(*spec.writes[chain.branches[0].output].query_at)
        grouped = all(branch.shape.gathered for branch in chain.branches)
        emission = emission_of(spec, shape, roles, grouped=grouped)
        for join in (join for join in shape.joins if join.asks):
            place = at_line(start, join.line)
            if any(_clock(spec, fed) != _clock(spec, shape.driving) for fed in _own(shape, join)):
                yield ModelError(
                    "dynamic_table_check needs one event time of the records that ask a dynamic "
                    "table and fill it",
                    place,
                    "give both readings of the topic the same event_time",
                )
            elif emission == "final":
                yield ModelError(
                    "dynamic_table_check contradicts final emission, which looks when the time is "
                    "up",
                    place,
                    "say another one at this query; windows over its rows may be final",
                )


def _own(shape: QueryShape, join: JoinShape) -> Iterator[SourceShape]:
    """Yield the readings of the driving topic that feed what a join looks up."""
    query = shape.source(join.alias).query
    if query is not None:
        yield from (each for each in _read(query) if each.topic == shape.driving.topic)


def _feeding(shape: QueryShape) -> Iterator[SourceShape]:
    """Yield the readings of the driving topic that feed the tables which a query looks up."""
    for source in shape.read[1:] if shape.joins else ():
        if source.table and source.topic == shape.driving.topic:
            yield source
    for below in shape.looked_up:
        yield from (each for each in _read(below) if each.topic == shape.driving.topic)


def _read(shape: QueryShape) -> Iterator[SourceShape]:
    yield from shape.read
    for below in shape.looked_up:
        yield from _read(below)


def _clock(spec: PipelineSpec, source: SourceShape) -> str | None:
    return spec.read_as(source.topic, source.reading).event_time

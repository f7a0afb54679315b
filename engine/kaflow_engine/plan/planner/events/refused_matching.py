"""What is asked of joins of events, and cannot be done or has no effect."""

from collections.abc import Iterator, Mapping, Sequence

from kaflow_engine.errors import ModelError, SqlError, UnknownName
from kaflow_engine.model.columns import Column
from kaflow_engine.model.pipelines.own_settings import as_said_by, owner_at, owners, settings_at
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.events.matching import emission_of, looks_up_only, row_times
from kaflow_engine.plan.planner.events.refused_lookup import wrong_asked, wrong_lookup
from kaflow_engine.plan.planner.events.refused_within import wrong_within
from kaflow_engine.plan.planner.events.sides import event_aliases, left_events
from kaflow_engine.plan.planner.roles import TopicRole
from kaflow_engine.sql.chain_shapes import ChainShape
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.syntax import at_line


def wrong_matching(
    spec: PipelineSpec,
    chains: Sequence[ChainShape],
    roles: Sequence[TopicRole],
    schemas: Mapping[str, Sequence[Column]],
) -> Iterator[ModelError]:
    """Yield what cannot be done of what is said about joins of events, or has no effect."""
    for said_at in dict.fromkeys(((), *(chain.shape.said_at for chain in chains))):
        own = as_said_by(spec, said_at)
        concerned = [chain for chain in chains if chain.shape.said_at == said_at]
        yield from _wrong_of(own, concerned, roles, schemas)
    for key in ("within", "row_time"):
        for owner in owners(spec, key):
            if not any(_joins_at(spec, owner, key, chain) for chain in chains):
                yield ModelError(
                    f"'{key}' has no effect: there is no join of events in this query",
                    spec.place(*owner, key),
                    "remove it, or write it at the query with the join",
                )
    for owner in owners(spec, "state"):
        joined = [chain.shape for chain in chains if _joins_at(spec, owner, "state", chain)]
        yield from _wrong_state(spec, owner, joined)


def _wrong_state(
    spec: PipelineSpec, owner: Path, shapes: Sequence[QueryShape]
) -> Iterator[ModelError]:
    if not shapes:
        yield ModelError(
            "'state' has no effect: events join nothing in this query",
            spec.place(*owner, "state"),
            "remove it, or write it at the query with the join; aggregation.ttl says how long rows "
            "of DISTINCT and groups are remembered",
        )
        return
    own = settings_at(spec, owner)
    topics = list(dict.fromkeys(topic for shape in shapes for topic in shape.topics))
    for name in own.state.events.overrides if own is not None and own.state is not None else ():
        if name not in topics:
            place = spec.place(*owner, "state", "events", "overrides", name)
            yield UnknownName("topic", name, topics, place)


def _joins_at(spec: PipelineSpec, owner: Path, key: str, chain: ChainShape) -> bool:
    """Tell whether events of a chain are joined in the query of a relation or an output."""
    for branch in () if chain.shape.is_table else chain.branches:
        write = spec.writes[branch.output]
        start = spec.place(*write.query_at)
        places = [at_line(start, join.line) or start for join in branch.shape.joins]
        if any(owner_at(spec, write, at, key) == owner for at in places):
            return True
    return False


def _wrong_of(
    spec: PipelineSpec,
    chains: Sequence[ChainShape],
    roles: Sequence[TopicRole],
    schemas: Mapping[str, Sequence[Column]],
) -> Iterator[ModelError]:
    found: list[ChainShape] = []
    for chain in chains:
        grouped = all(branch.shape.gathered for branch in chain.branches)
        if emission_of(spec, chain.shape, roles, grouped=grouped) == "on_match":
            found.append(chain)
    if not found:
        yield from _without_effect(spec, [chain.shape for chain in chains], roles)
    else:
        yield from _unknown_joins(spec, [chain.shape for chain in found], roles)
    yield from wrong_lookup(spec, [chain.shape for chain in chains])
    yield from wrong_asked(spec, chains, roles)
    for chain in found:
        yield from _wrong_joins(spec, chain, roles)
    for topic in sorted(row_times(spec, chains, roles)):
        if any(column.name.lower() == TIME for column in schemas[topic]):
            yield ModelError(
                f"'row_time: latest' needs the event time of '{topic}', which has a column "
                f"'{TIME}' of its own",
                spec.place("row_time"),
                "remove it: rows then have the time of their driving record",
            )


def _without_effect(
    spec: PipelineSpec, shapes: Sequence[QueryShape], roles: Sequence[TopicRole]
) -> Iterator[ModelError]:
    if spec.emission.type == "on_match":
        yield ModelError(
            "on_match emission is for joins of events, and no two topics of events are joined",
            spec.place("emission", "type"),
            "remove it: a row leaves at once, or when what an INNER JOIN looks up is there",
        )
        return
    looked_up = [shape for shape in shapes if looks_up_only(shape, roles)]
    yield from wrong_within(spec, looked_up, roles)
    within = None if looked_up else spec.within
    for key, said in (("within", within), ("row_time", spec.row_time == "latest" or None)):
        if said is not None:
            yield ModelError(
                f"'{key}' has no effect: it is for joins of events under on_match emission",
                spec.place(key),
                "set emission.type to on_match, or remove it"
                if key == "row_time"
                else "set emission.type to on_match, or remove it: TTLs under state.events say "
                "how far events may be apart that match",
            )


def _unknown_joins(
    spec: PipelineSpec, shapes: Sequence[QueryShape], roles: Sequence[TopicRole]
) -> Iterator[ModelError]:
    known = {
        join.called.lower(): join.called
        for shape in shapes
        for join in shape.joins
        if join.alias in event_aliases(shape, roles)
    }
    for name in spec.within.joins if spec.within is not None else ():
        if name.lower() not in known:
            place = spec.place("within", "joins", name)
            yield UnknownName("join of events", name, known.values(), place)


def _wrong_joins(
    spec: PipelineSpec, chain: ChainShape, roles: Sequence[TopicRole]
) -> Iterator[ModelError]:
    shape, events = chain.shape, event_aliases(chain.shape, roles)
    start = spec.place(*spec.writes[chain.branches[0].output].query_at)
    left = sorted(left_events(shape, roles))
    keys = {
        tuple(sorted(pair.outer.sql for pair in join.keys))
        for join in shape.joins
        if join.alias in events
    }
    if any(join.kind == "ANTI" for join in shape.joins) and len(events) > 1:
        yield SqlError(
            "FULL JOIN of events beside another join of events cannot run here",
            at_line(start, shape.joins[0].line),
            "write the rows of the FULL JOIN to a topic, and join that in another pipeline",
        )
    elif left and len(keys) > 1:
        line = next(join.line for join in shape.joins if join.alias == left[0])
        called = shape.source(left[0]).called or left[0]
        yield SqlError(
            f"LEFT JOIN of events ('{called}') beside events that are joined over another key: "
            "a row could wait for one of them, and leave for the other",
            at_line(start, line),
            "write INNER JOIN; or write the rows of the first join to a topic, and join that in "
            "another pipeline",
        )
    turned = {
        join.turned
        for each in chain.branches
        for join in each.shape.joins
        if join.alias == shape.joins[0].alias
    }
    if spec.within is not None and len(turned) > 1 and spec.within.before != spec.within.after:
        yield ModelError(
            "'within' says another thing of LEFT JOIN and of RIGHT JOIN, and queries that share a "
            "join are written in both ways",
            spec.place("within"),
            "write them in one way",
        )

"""`emission: on_match`: which joins leave so, which events match, and what cannot be done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.edges import SideParams, Within
from kaflow_engine.flow.operators import KeyedJoin
from kaflow_engine.model.pipelines.own_settings import as_said_by
from kaflow_engine.model.query_settings import WithinSpec
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.events.sides import event_aliases, left_events
from kaflow_engine.plan.planner.roles import TopicRole, time_to_live
from kaflow_engine.plan.planner.steps import KeyStep, Needs
from kaflow_engine.sql.chain_shapes import ChainShape
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.shape import MATCHED, Expr, JoinShape, QueryShape

AT_ONCE = WithinSpec(before=0, after=0)
"""Of look-ups: what is not there when a record comes does not count."""
Emission = Literal["immediate", "smart", "on_match", "final"]


def emission_of(
    spec: PipelineSpec, shape: QueryShape, roles: Sequence[TopicRole], *, grouped: bool
) -> Emission:
    """Return the emission of the joins of a chain.

    What is grouped must leave once: where the author says nothing, it leaves when it matches, and
    final windows need final joins only below a LEFT JOIN of events, whose rows would else leave
    before their matches. INNER JOINs of events send the same rows under `immediate`.

    Args:
        spec: What the author wrote, as it counts for the chain.
        shape: What the chain reads and joins.
        roles: The topics.
        grouped: All queries over the chain group its rows.
    """
    said, left = spec.emission.type, left_events(shape, roles)
    if said == "on_match" and (shape.is_table or not event_aliases(shape, roles)):
        return "immediate"
    if said == "final" and grouped and not left:
        return "immediate"
    implied = "type" not in spec.emission.model_fields_set
    if implied and grouped and event_aliases(shape, roles) and (left or _is_said(spec)):
        return "on_match"
    return said


def with_emission(
    spec: PipelineSpec, shape: QueryShape, roles: Sequence[TopicRole], *, grouped: bool
) -> PipelineSpec:
    """Return what the author wrote as it counts for the joins of a chain, with their emission.

    Args:
        spec: What the author wrote.
        shape: What the chain reads and joins.
        roles: The topics.
        grouped: All queries over the chain group its rows.
    """
    spec = as_said_by(spec, shape.said_at)
    found = emission_of(spec, shape, roles, grouped=grouped)
    if found == spec.emission.type:
        return spec
    emission = spec.emission.model_copy(update={"type": found})
    return spec.model_copy(update={"emission": emission})


def looks_up_only(shape: QueryShape, roles: Sequence[TopicRole]) -> bool:
    """Tell whether events look tables or dimensions up, and meet no other events."""
    return bool(shape.joins) and not shape.is_table and not event_aliases(shape, roles)


def filters_at_once(spec: PipelineSpec, shape: QueryShape, roles: Sequence[TopicRole]) -> bool:
    """Tell whether a record without a match goes nowhere, and does not wait for one.

    Args:
        spec: What the author wrote, with the emission of the chain.
        shape: What the chain reads and joins.
        roles: The topics.
    """
    inner = any(join.kind == "INNER" for join in shape.joins)
    at_once = spec.within == AT_ONCE and spec.emission.type == "immediate"
    return at_once and inner and looks_up_only(shape, roles)


def _is_said(spec: PipelineSpec) -> bool:
    return spec.within is not None or spec.row_time == "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """How the events of a chain match, under `on_match`."""

    within: Mapping[str, Within]
    """By the alias of the joined side."""
    grace: int
    """How many milliseconds longer events are kept than they may be apart."""
    left: frozenset[str]
    """The sides that need not match: a row waits for them until its time is up."""
    latest: bool
    """Rows have the greatest time of their events."""

    @property
    def rest(self) -> int:
        """Milliseconds that a driving record is kept."""
        return max(within.after for within in self.within.values()) + self.grace

    @property
    def times(self) -> tuple[Expr, ...]:
        """The event times of the sides, where they count."""
        aliases = sorted(self.within) if self.latest else []
        return tuple(Expr(sql=_time(alias), uses=((alias, TIME),)) for alias in aliases)

    def needs(self, needs: Needs, steps: Sequence[KeyStep]) -> Needs:
        """Return what a row must have to leave each step: matches, too."""
        found = (
            (*own, *(_matched(alias) for alias in sorted(step.aliases & self.left)))
            for own, step in zip(needs.steps, steps, strict=True)
        )
        return replace(needs, steps=tuple(found))

    def applied(self, joins: Sequence[KeyedJoin]) -> tuple[KeyedJoin, ...]:
        """Return the joins of the chain with what events match, and how long they are kept."""
        found = [replace(join, sides=tuple(map(self._side, join.sides))) for join in joins]
        if self.latest:
            times = ", ".join(f"epoch_ms({_time(alias)})" for alias in sorted(self.within))
            found[-1] = replace(found[-1], time=f"greatest({times})")
        return tuple(found)

    def _side(self, side: SideParams) -> SideParams:
        within = self.within.get(side.alias)
        if within is None:
            return side
        return replace(side, within=within, ttl=within.before + self.grace)


def _time(alias: str) -> str:
    return identifier(f"{alias}.{TIME}")


def _matched(alias: str) -> Expr:
    name = identifier(f"{alias}.{MATCHED}")
    return Expr(sql=f"nullif({name}, FALSE)", uses=((alias, MATCHED),))


def matching_of(
    spec: PipelineSpec, shape: QueryShape, roles: Sequence[TopicRole]
) -> Matching | None:
    """Return how the events of a chain match; None where it is not under `on_match`.

    Args:
        spec: What the author wrote, with the emission of the chain.
        shape: What the chain reads and joins.
        roles: The topics.
    """
    if spec.emission.type != "on_match":
        return None
    said, events = spec.within or WithinSpec(), event_aliases(shape, roles)
    joined = [join for join in shape.joins if join.alias in events]
    return Matching(
        within={join.alias: _within(said, shape, join, roles) for join in joined},
        grace=said.grace,
        left=left_events(shape, roles),
        latest=spec.row_time == "latest",
    )


def _within(
    said: WithinSpec, shape: QueryShape, join: JoinShape, roles: Sequence[TopicRole]
) -> Within:
    apart = said.of_join(join.called)
    before, after = (apart.after, apart.before) if join.turned else (apart.before, apart.after)
    side = time_to_live(shape.source(join.alias), roles)
    driving = time_to_live(shape.driving, roles)
    return Within(
        before=side if before is None else before, after=driving if after is None else after
    )


def kept_roles(
    spec: PipelineSpec, chains: Sequence[ChainShape], roles: Sequence[TopicRole]
) -> tuple[TopicRole, ...]:
    """Return the roles of topics with the longest time for which a join keeps their events.

    Args:
        spec: What the author wrote.
        chains: What its queries read and join.
        roles: The topics.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    for chain in chains:
        shape, grouped = chain.shape, all(branch.shape.gathered for branch in chain.branches)
        if shape.is_table or not shape.joins:
            continue  # nothing of it is kept for the TTL of a topic
        own = {role.name: role.said_by(shape.said_at) for role in roles}
        said = with_emission(spec, shape, roles, grouped=grouped)
        matching = matching_of(said, shape, tuple(own.values()))
        for source in (each for each in shape.read if each.query is None):
            role = own[source.topic]
            kept = (role.ttl, role.ttl_from)
            if matching is not None and said.within is not None:
                within = matching.within.get(source.alias)
                if source == shape.driving:
                    kept = (matching.rest, "within")
                elif within is not None:
                    kept = (within.before + matching.grace, "within")
            found.setdefault(source.topic, []).append(kept)
    return tuple(
        replace(role, ttl=ttl, ttl_from=ttl_from)
        for role in roles
        for ttl, ttl_from in [max(found.get(role.name, [(role.ttl, role.ttl_from)]))]
    )


def row_times(
    spec: PipelineSpec, chains: Sequence[ChainShape], roles: Sequence[TopicRole]
) -> frozenset[str]:
    """Return the topics whose event time counts for rows of joins under `row_time: latest`."""
    shapes = [
        chain.shape
        for chain in chains
        if not chain.shape.is_table and as_said_by(spec, chain.shape.said_at).row_time == "latest"
    ]
    sources = (shape.source(each) for shape in shapes for each in event_aliases(shape, roles))
    return frozenset(source.topic for source in sources if source.query is None)

"""What the groups of a scenario exercise, by name."""

from collections.abc import Iterator

from tests.property.scenario import Scenario
from tests.reference.grouping import Grouping, Hop, Session

EXPECTED_OF_GROUPS = frozenset(
    """
    group:no_window group:tumble group:hop group:session group:final group:ended group:table
    group:over_groups group:each group:batch group:grace group:ttl group:having group:filter
    group:one group:keys
    group:joined group:elements group:beside_rows group:grouped_twice
    group:distinct group:distinct_behind group:over_distinct
    group:leaves group:deletes group:late group:changes_twice
    """.split()
)
"""Every name that must come up."""


def features_of_groups(scenario: Scenario) -> Iterator[str]:
    """Name what concerns GROUP BY."""
    grouped = [write for write in scenario.pipeline.writes if write.groups]
    if not grouped:
        return
    if len(grouped) < len(scenario.pipeline.writes):
        yield "group:beside_rows"
    if len(grouped) > 1:
        yield "group:grouped_twice"
    for write in grouped:
        yield from _group(write.groups[0])
        if len(write.groups) > 1:
            yield "group:over_groups"
            if write.groups[0].distinct:
                yield "group:over_distinct"
            if write.groups[1].distinct:
                yield "group:distinct_behind"
        if write.chain.joins:
            yield "group:joined"
        if write.unnests:
            yield "group:elements"
    said = scenario.interpret()
    topics = {write.topic for write in grouped}
    rows = [row for row in said.rows if row.topic in topics]
    if rows:
        yield "group:leaves"
    if any(row.value is None for row in rows):
        yield "group:deletes"
    if len({(row.topic, row.key) for row in rows}) < len(rows):
        yield "group:changes_twice"
    if said.counters.get("late_rows"):
        yield "group:late"


def _group(group: Grouping) -> Iterator[str]:
    if group.distinct:
        yield "group:distinct"
        return
    match group.window:
        case None:
            yield "group:no_window"
            if group.ttl is not None:
                yield "group:ttl"
        case Hop(size=size, advance=advance):
            yield "group:tumble" if size == advance else "group:hop"
        case Session():
            yield "group:session"
    if group.window is not None and group.grace:
        yield "group:grace"
    yield "group:final" if group.final else "group:ended" if group.ended else "group:table"
    if not group.final:
        yield "group:each" if group.each else "group:batch"
    if group.having:
        yield "group:having"
    if any(call.where for call in group.calls):
        yield "group:filter"
    yield "group:keys" if group.keys else "group:one"

"""Where a state begins whose topics another program has read, or a consumer group, before."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.positions.kept import kept_positions
from kaflow_engine.flow.flow import Flow
from kaflow_engine.runtime.source.inputs import Inputs
from kaflow_engine.runtime.source.offsets import merged
from kaflow_engine.runtime.takeover.open_state import NewState
from kaflow_engine.state.log.batch_log import Offsets, StateRecord

LOGGER = logging.getLogger("kaflow.runtime")

_Asked = Callable[[Mapping[str, int]], Offsets]
"""Takes topics and their partitions; returns the offsets of those that are known."""


def from_positions(
    new_state: NewState, plan: Flow, inputs: Inputs, connections: Connections
) -> NewState:
    """Let events begin where a table of positions says, else at the committed offsets of a group;
    tables are read from their beginning.

    Args:
        new_state: Makes a state that begins as the configuration says, as events do of which
            nothing is known, or an offset that the topic does not reach.
        plan: What is to run.
        inputs: What it reads.
        connections: Where outside systems are.
    """
    asked = [*_asked(plan, inputs, connections)]
    events = {t.name for t in plan.sources if not t.is_kept and t.connector is None}

    def made(counts: Mapping[str, int]) -> StateRecord:
        fresh = new_state(counts)
        some = {topic: count for topic, count in counts.items() if topic in events}
        first = inputs.offsets(some, "earliest")
        end = inputs.offsets(some, "latest", committed=False)
        start = fresh.start
        for what, ask in reversed(asked):
            begin = within(ask(some), first, end)
            if begin:
                LOGGER.info(
                    "pipeline '%s' begins where %s is in %s",
                    plan.name,
                    what,
                    ", ".join(sorted(begin)),
                )
            start = merged(start, begin)
        return replace(fresh, start=start)

    return made if asked else new_state


def _asked(plan: Flow, inputs: Inputs, connections: Connections) -> Iterator[tuple[str, _Asked]]:
    """Yield what knows of positions, the one that counts most first."""
    if (kept := kept_positions(plan.positions, connections)) is not None:
        yield str(kept), kept.read
    if plan.positions is not None:
        for group, topic in plan.positions.groups:
            yield f"consumer group '{group}'", partial(_committed, inputs, group, topic)
    if plan.consumer_group is not None:
        group = plan.consumer_group
        yield f"consumer group '{group}'", partial(inputs.topics.committed, group)


def _committed(inputs: Inputs, group: str, topic: str, counts: Mapping[str, int]) -> Offsets:
    return inputs.topics.committed(group, {t: n for t, n in counts.items() if t == topic})


def within(offsets: Offsets, first: Offsets, end: Offsets) -> Offsets:
    """Return the offsets that topics reach, from their first record to behind their last.

    >>> within({"a": {0: 5, 1: 5}, "b": {0: 1}}, {"a": {0: 5, 1: 6}, "b": {0: 0}},
    ...        {"a": {0: 5, 1: 9}, "b": {0: 0}})
    {'a': {0: 5}}
    """
    found = {
        topic: {p: at for p, at in places.items() if first[topic][p] <= at <= end[topic][p]}
        for topic, places in offsets.items()
    }
    return {topic: places for topic, places in found.items() if places}

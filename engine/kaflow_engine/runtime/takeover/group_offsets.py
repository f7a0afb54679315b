"""Where a state begins whose pipeline goes on for a consumer group that has read its topics."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from kaflow_engine.flow.flow import Flow
from kaflow_engine.runtime.source.inputs import Inputs
from kaflow_engine.runtime.source.offsets import merged
from kaflow_engine.runtime.takeover.open_state import NewState
from kaflow_engine.state.log.batch_log import Offsets, StateRecord

LOGGER = logging.getLogger("kaflow.runtime")


def from_committed(new_state: NewState, plan: Flow, inputs: Inputs, group: str) -> NewState:
    """Let events begin at the committed offsets of a group; tables are read from their beginning.

    Args:
        new_state: Makes a state that begins as the configuration says, as events do of which the
            group has no offset, or one that the topic does not reach.
        plan: What is to run.
        inputs: What it reads.
        group: The consumer group.
    """
    events = {t.name for t in plan.sources if not t.is_kept and t.connector is None}

    def made(counts: Mapping[str, int]) -> StateRecord:
        fresh = new_state(counts)
        asked = {topic: count for topic, count in counts.items() if topic in events}
        begin = within(
            inputs.topics.committed(group, asked),
            inputs.offsets(asked, "earliest"),
            inputs.offsets(asked, "latest", committed=False),
        )
        if begin:
            LOGGER.info(
                "pipeline '%s' begins where consumer group '%s' is in %s",
                plan.name,
                group,
                ", ".join(sorted(begin)),
            )
        return replace(fresh, start=merged(fresh.start, begin))

    return made


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

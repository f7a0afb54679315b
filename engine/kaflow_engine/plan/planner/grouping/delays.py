"""How far rows of groups may be behind the watermark, as a constant of the plan."""

from typing import assert_never

from kaflow_engine.flow.operators import Aggregate, Gathers
from kaflow_engine.flow.tables import Append
from kaflow_engine.flow.timed import Runs
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.flow.windows import span_of
from kaflow_engine.plan.planner.grouping.settings import GroupParts
from kaflow_engine.plan.planner.wiring import Grouped


def delay_into(group: GroupParts, before: Grouped) -> int:
    """Return how far rows of a GROUP BY may be behind the watermark for the one that takes them.

    The rows of one window leave together: a group of that very window is over right after it.
    """
    match before.aggregate:
        case Aggregate(window=window, delay=delay, grace=grace) if window and group.shape.passed_on:
            return delay + max(0, grace - group.settings.grace)
        case _:
            return before.delay


def delay_behind(gathers: Gathers, delay: int) -> int:
    """Return how far rows may be behind the watermark when they leave, of those that may be so far
    when they come; no window stands behind runs."""
    match gathers:
        case Runs():
            return 0
        case Append() | Transform():
            return delay
        case Aggregate(window=window, grace=grace):
            return delay if window is None else delay + span_of(window) + grace
        case _:
            assert_never(gathers)

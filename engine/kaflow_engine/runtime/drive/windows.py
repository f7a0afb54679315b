"""Windows in a backfill: those that begin in its range, each with all of its records."""

from dataclasses import replace

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import StateError
from kaflow_engine.flow.chains.chain import Chain, aggregates_of, chains
from kaflow_engine.flow.flow import Backfill, Flow
from kaflow_engine.flow.graph import aggregates, operator_of, readers_of, taker_of
from kaflow_engine.flow.operators import Aggregate, Gathers, Operator, Project
from kaflow_engine.flow.tables import Materialize
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.flow.windows import (
    WINDOW_START,
    SessionWindow,
    span_of,
)


def refuse_groups(plan: Flow) -> None:
    """Refuse to backfill groups of which a range does not hold all records.

    Raises:
        StateError: with the way out.
    """
    hint = "give the pipeline another id and another output, and run it from the first record"
    if any(isinstance(each, Materialize) for each in plan.operators):
        raise StateError(
            f"pipeline '{plan.name}' reads tables, which are what all of their records make, and a "
            "backfill would read only those of its range",
            None,
            hint,
        )
    for aggregate in aggregates(plan):
        if aggregate.leaves == "first":
            raise StateError(
                f"pipeline '{plan.name}' has DISTINCT, and a backfill would not know which rows "
                "left before its range",
                None,
                hint,
            )
        if aggregate.leaves == "ended":
            raise StateError(
                f"pipeline '{plan.name}' has emission.late_updates, and a backfill is for "
                "windows that leave once, when they are closed",
                None,
                hint,
            )
        if aggregate.is_table:
            raise StateError(
                f"pipeline '{plan.name}' has GROUP BY without a window that closes, and a backfill "
                "would count only the records of its range",
                None,
                hint,
            )
        if isinstance(aggregate.window, SessionWindow):
            raise StateError(
                f"pipeline '{plan.name}' has sessions, and one at the edge of a range may have "
                "begun at any time before it",
                None,
                hint,
            )


def with_whole_windows(plan: Flow, wanted: Backfill) -> Flow:
    """Return a plan whose windows leave where they begin in a range, and take late records.

    Records are read in the order of their Kafka timestamps, and one is at most `slack` older than
    that, as those before it are younger. So no window closes before the last of its records.
    """

    def bounded(operator: Operator) -> Operator:
        match operator:
            case Aggregate(delay=delay):
                return replace(operator, delay=delay + 2 * wanted.slack)
            case Project() if (before := _window_before(plan, operator)) is not None:
                return replace(operator, where=_within(before, operator.where, wanted))
            case _:
                return operator

    return replace(plan, operators=tuple(bounded(each) for each in plan.operators))


def _window_before(plan: Flow, project: Project) -> Aggregate | None:
    """Return the aggregate whose rows a projection has for a sink; None: it has others."""
    before = operator_of(plan, project.rows.input)
    return before if isinstance(before, Aggregate) and _leaves(plan, project) else None


def _leaves(plan: Flow, project: Project) -> bool:
    """Tell whether rows of a projection go to a sink, or through transforms to one."""
    taker = taker_of(plan, project)
    if not isinstance(taker, Transform):
        return not isinstance(taker, Gathers)
    behind = [each for each in readers_of(plan, taker.id) if isinstance(each, Project)]
    return all(_leaves(plan, each) for each in behind)


def _within(aggregate: Aggregate, where: str | None, wanted: Backfill) -> str:
    start = f"epoch_ms({identifier(f'{aggregate.alias}.{WINDOW_START}')})"
    own = f"{start} >= {wanted.start} AND {start} < {wanted.end}"
    return own if where is None else f"{own} AND ({where})"


def before_range(plan: Flow, chain: Chain) -> int:
    """Return how many milliseconds before a range records may be that its windows need: those of
    windows below, which may begin earlier.
    """
    own = _windows_behind(plan, chain)
    return max((each.delay for each in own), default=0) - min((e.delay for e in own), default=0)


def behind_range(plan: Flow, chain: Chain) -> int:
    """Return how many milliseconds behind a range its last window may end."""
    own = _windows_behind(plan, chain)
    longest = max((span_of(each.window) for each in own if each.window), default=0)
    return before_range(plan, chain) + longest


def _windows_behind(plan: Flow, chain: Chain) -> tuple[Aggregate, ...]:
    """Return what groups the rows of a chain, also with those of others."""
    gathering = (each for each in chains(plan) if chain.number in each.below)
    behind = (one for each in gathering for one in _windows_behind(plan, each))
    return (*aggregates_of(plan, chain), *behind)

"""Throttles and runs of two plans: which goes on with what which one keeps, and what is lost."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from kaflow_engine.flow.chains.chain import STATES, chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import entries_of, throttle_of, throttles
from kaflow_engine.flow.numbers import RUNS, TIMED, timed_state, with_states
from kaflow_engine.flow.timed import Runs, Throttle
from kaflow_engine.flow.transforms import IN, Transform


def inherit_timed(old: Flow, new: Flow) -> Flow:
    """Return the new plan in which what holds changes back for an output, and what makes the same
    runs, has the state of the one before.

    Others get numbers that none of their chain has had.

    Args:
        old: The plan of the state.
        new: The plan that is to run, with the chains of the old one.
    """
    kept = {state for state in old.retired_states if state % STATES > TIMED}
    used = {*kept, *(each.state for each in _timed(old))}
    if not used and not _timed(new):
        return new
    known = {each.id: each.state for each in _timed(old)}
    states: dict[str, int] = {}
    for each in _timed(new):
        chain, first = chain_of(new, each).number, RUNS if isinstance(each, Runs) else 0
        taken = {*used, *states.values()}
        free = next(n for n in range(first + 1, STATES) if timed_state(chain, n) not in taken)
        states[each.id] = known.get(each.id, timed_state(chain, free))
    gone = used - {*states.values()}
    return with_states(new, states, retired=tuple(sorted({*new.retired_states, *gone})))


def _timed(flow: Flow) -> tuple[Throttle | Runs, ...]:
    return (*throttles(flow), *runs_of(flow))


def runs_of(flow: Flow) -> tuple[Runs, ...]:
    """Return what makes runs of rows."""
    return tuple(each for each in flow.operators if isinstance(each, Runs))


def held_lost(old: Flow, new: Flow) -> Iterator[str]:
    """Yield of what goes on what is held in it and would be lost, or read as something else."""
    yield from _changes_lost(old, new)
    before = {each.id: each for each in runs_of(old)}
    for each in runs_of(new):
        known = before.get(each.id)
        if known is None:
            continue
        if known.state // STATES in new.retired:
            yield (
                f"{called(each)}: its rows come from elsewhere, and those of an unfinished run "
                "stay behind"
            )
        elif _layout(old, known) != _layout(new, each):
            yield (
                f"{called(each)}: it reads other columns than the rows of an unfinished run have"
            )


def runs_dropped(old: Flow, new: Flow) -> Iterator[str]:
    """Yield what becomes of the rows that wait for runs which a plan does not have any more."""
    after = {each.id for each in runs_of(new)}
    for each in runs_of(old):
        if each.id not in after:
            yield f"{called(each)}: rows of an unfinished run are dropped"


def documents_of_runs(flow: Flow) -> list[dict[str, Any]]:
    """Return what makes runs in a flow as documents."""
    return [
        {
            "called": called(each),
            "size": each.size,
            "every": each.every,
            "per_partition": each.per_partition,
            "sql": " ".join(each.sql.split()),
            "columns": [asdict(column) for column in each.results],
        }
        for each in runs_of(flow)
    ]


def documents_of_transforms(flow: Flow) -> list[dict[str, Any]]:
    """Return what transforms rows in a flow as documents."""
    found = [each for each in flow.operators if isinstance(each, Transform)]
    known = Counter(each.name for each in found)
    return [
        {
            "called": f"transform '{each.name}'"
            + (f" ({each.id})" if known[each.name] > 1 else ""),
            **asdict(each.params),
            "columns": [asdict(column) for column in each.results],
            "selected": [
                f"{sql} AS {column.name.removeprefix(IN)}"
                for entry in entries_of(flow, each)
                for column, sql in entry.columns
            ],
            "where": [entry.where for entry in entries_of(flow, each) if entry.where],
        }
        for each in found
    ]


def called(runs: Runs) -> str:
    """Return what people call runs."""
    return f"runs '{runs.id}'"


def _layout(flow: Flow, runs: Runs) -> tuple[object, ...]:
    entries = entries_of(flow, runs)
    return runs.columns, runs.per_partition, *(entry.columns for entry in entries)


def _changes_lost(old: Flow, new: Flow) -> Iterator[str]:
    """Yield the outputs that stay, and of which changes that are held would never leave."""
    for sink in new.sinks:
        before = next((each for each in old.sinks if each.id == sink.id), None)
        known = None if before is None else throttle_of(old, before)
        if known is None:
            continue
        if known.state // STATES in new.retired:
            yield (
                f"output '{sink.target}': its rows come from elsewhere, and changes that 'every' "
                "holds back stay behind"
            )
        elif throttle_of(new, sink) is None:
            yield (
                f"output '{sink.target}': changes that 'every' holds back would be lost without "
                "it; 'every: 0s' lets what is held leave when it is due, and holds nothing more"
            )

"""Fencing of earlier runs, and the checks for which a start is refused.

One guard for every sink: a sink says what it holds (`Holding`), the state directory says what it
knows (`Logged`), and whatever a sink holds of a state or batch that is not known ends the start.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.run_log import RunStart
from kaflow_engine.connectors.same_batch import elsewhere
from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.runtime.batch.batch_backup import batches_left
from kaflow_engine.runtime.sink.outputs import look_at_outputs
from kaflow_engine.runtime.takeover.restore import RESTORED
from kaflow_engine.runtime.tasks.outputs import NO_CONNECTIONS
from kaflow_engine.state.hints import NEW_ID_REPEATS
from kaflow_engine.state.log.approval import Rebuild
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord
from kaflow_engine.state.log.mark import batch_mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """What a state directory knows of its state, with the batches that are kept elsewhere."""

    pipeline: str
    state: str
    generation: int
    last: int
    """The last batch: done, begun or kept."""
    marks: Mapping[int, str]
    """`batch_mark` of batches that may have been delivered, as far as they are still known."""
    replaced: frozenset[tuple[str, int]] = frozenset()
    """State ids, with generations, that the one at hand was made to replace."""


def doubtful(log: BatchLog) -> int | None:
    """Return a batch that may have been delivered although the log does not have it as done."""
    begun = log.open_batch()
    return log.next_number() if begun or log.store.exists(RESTORED) else None


def last_epoch(log: BatchLog) -> int:
    """Return the greatest epoch that the log knows."""
    last, begun = log.last_commit(), log.open_batch()
    return max(last.epoch if last else 0, begun.epoch if begun else 0)


def check_start(
    log: BatchLog,
    state: StateRecord,
    plan: Flow,
    rebuild: Rebuild | None,
    keeps: bool,
    start: RunStart,
    *,
    connections: Connections = NO_CONNECTIONS,
) -> None:
    """Refuse a start whose state lacks what any sink holds.

    Args:
        log: The batch log.
        state: The state at hand.
        plan: What is to run.
        rebuild: What is carried out, where the state was made to replace another one.
        keeps: Whether the pipeline's topic keeps batches that no checkpoint covers.
        start: What that topic says.
        connections: Where outside systems are.

    Raises:
        StateError: It was taken back, copied, or is another state.
        SinkError: An output could not be written, or cannot be read.
    """
    kept: Mapping[int, Mapping[str, Any]] = start.batches if keeps else {}
    held = {*look_at_outputs(plan, state, connections), *start.holdings}
    left = batches_left(log, kept, start.epoch, plan.name)
    marks = {batch.number: batch_mark(batch) for batch in left}
    for number in {each.batch for each in held} - set(marks):
        if log.store.exists(f"batches/{number}.json"):
            marks[number] = batch_mark(log.load_batch(number))
    logged = Logged(
        pipeline=plan.name,
        state=state.state_id,
        generation=state.generation,
        last=left[-1].number if left else log.next_number() - 1,
        marks=marks,
        replaced=rebuild.states if rebuild is not None else frozenset(),
    )
    check_holdings(logged, held)


def check_holdings(logged: Logged, held: Iterable[Holding]) -> None:
    """Refuse a state that lacks what sinks hold.

    Raises:
        StateError: Says what a sink holds, and what can be done.
    """
    known = [each for each in held if (each.state, each.generation) not in logged.replaced]
    strange = [
        each for each in known if each.state != logged.state or each.generation > logged.generation
    ]
    if strange:
        raise _strange(logged, strange)
    newest = max(known, key=lambda each: (each.batch, each.table or ""), default=None)
    if newest is not None and newest.batch > logged.last:
        raise StateError(
            f"batch {newest.batch} of pipeline '{logged.pipeline}' was delivered{_to(newest)}, but "
            f"its log ends at batch {logged.last}",
            hint=f"restore the newer state directory, or {_anew(newest)}",
        )
    for each in known:
        mark = logged.marks.get(each.batch, "") if each.generation == logged.generation else ""
        if mark and each.mark and mark != each.mark:
            raise StateError(
                f"batch {each.batch} of pipeline '{logged.pipeline}' was delivered{_to(each)} with "
                "other records than its log has for it: another copy of the state was run",
                hint=f"restore the state directory that was run last, or {_anew(each)}",
            )


def _strange(logged: Logged, held: Iterable[Holding]) -> StateError:
    found = tuple(held)
    newest = max(found, key=lambda each: (each.batch, each.table or ""))
    states = sorted({(each.state, each.generation) for each in found})
    names = ", ".join(f"'{state}' generation {generation}" for state, generation in states)
    return StateError(
        f"pipeline '{logged.pipeline}' has delivered rows (up to batch {newest.batch})"
        f"{_to(newest)} from state {names}, but the state at hand is '{logged.state}' generation "
        f"{logged.generation}",
        hint=f"bring that state back (its directory, or its snapshots), or {_anew(newest)}",
    )


def _to(held: Holding) -> str:
    return f" to {held.kept_in} '{held.table}'" if held.table is not None else ""


def _anew(held: Holding) -> str:
    if held.table is not None:
        return elsewhere(held.kept_in)
    return NEW_ID_REPEATS

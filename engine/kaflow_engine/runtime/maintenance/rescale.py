"""Gives a state another number of partitions: a new generation that begins with its own snapshot.

Until `state.json` is replaced, in one move, everything is as it was: the new generation's snapshot
stands under a batch that reads nothing, and no run looks at another generation's snapshots.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from kaflow_engine.errors import StateError
from kaflow_engine.flow.chains.clocks import clocks
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import state_names
from kaflow_engine.operators.rows.partitioning import SHARDS, part_of_shard, shards_of
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.operators.watermark import advance
from kaflow_engine.runtime.batch.position import Position, load_standing
from kaflow_engine.runtime.clock.ticks import clocks_at, due_chains
from kaflow_engine.runtime.planning.plan_codec import fingerprint, plan_of, plan_text
from kaflow_engine.runtime.source.offsets import empty_ranges, size_of
from kaflow_engine.runtime.takeover.restore import RESTORED
from kaflow_engine.state.copies.copies import ready_copy
from kaflow_engine.state.copies.rocks import RocksCopy
from kaflow_engine.state.copies.rocks_open import open_copy, wipe
from kaflow_engine.state.copies.snapshots import complete_snapshot, load_snapshot, take_snapshot
from kaflow_engine.state.log.batch_log import (
    FIRST,
    BatchLog,
    BatchRecord,
    CommitRecord,
    StateRecord,
)
from kaflow_engine.state.log.changes import to_changes
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.copy_location import COPIES
from kaflow_engine.state.storage.store import Damaged, Store

STAGED = "rescaled"
"""Where partitions of the new generation are made, one at a time, in the state directory."""

_AT_ONCE = 20_000
_BELOW_ALL = -(1 << 60)
"""Parts of a new copy are numbered from here: one left half filled is behind every batch."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescaled:
    """What a rescale did."""

    state: StateRecord
    """Of the new generation."""
    batch: int
    """The batch that it begins behind."""
    before: int
    """Partitions that the state had."""
    entries: int


def rescale(
    directory: Path,
    log: BatchLog,
    snapshots: Store,
    partitions: int,
    epoch: int,
    now: int,
    say: Say = lambda text: None,
) -> Rescaled:
    """Give a state another number of partitions; its lease must be held, and its runs fenced.

    Interrupted anywhere, it leaves the old state or the new one, and can be called again.

    Args:
        directory: The state directory of the pipeline.
        log: Its batch log.
        snapshots: Its snapshot store.
        partitions: How many there shall be, 1 to 256.
        epoch: Of this command.
        now: Epoch milliseconds.
        say: Called with how far it is.

    Raises:
        StateError: There is no state, a batch is open, or the state cannot be read.
    """
    state = log.load_state()
    if state is None:
        raise StateError(f"there is no state in '{directory}'", hint="run the pipeline first")
    if not 1 <= partitions <= SHARDS:
        raise StateError(f"a state has 1 to {SHARDS} partitions, not {partitions}")
    old = check_rescale(log, state)
    _finish_idle_batch(log, state, old, epoch)
    standing = load_standing(log, state)
    new = replace(old, partitions=partitions)
    after = replace(
        state,
        generation=state.generation + 1,
        partitions=partitions,
        fingerprint=fingerprint(new),
    )
    _forget_unfinished(snapshots, state.ref, standing.batch)
    shutil.rmtree(directory / STAGED, ignore_errors=True)
    batch, entries = standing.batch, 0
    if standing.batch >= FIRST:
        batch = standing.batch + 1
        sources = _Sources(directory, log, snapshots, state, standing.batch)
        entries = _stage(directory / STAGED, sources, new, after.ref, batch, snapshots, now, say)
        _close_generation(log, state, old, standing, epoch)
    log.save_plan(after.fingerprint, plan_text(new))
    log.replace_state(after)
    shutil.rmtree(directory / COPIES, ignore_errors=True)  # the next run builds its own
    return Rescaled(state=after, batch=batch, before=state.partitions, entries=entries)


def already(state: StateRecord, log: BatchLog, partitions: int) -> Rescaled | None:
    """Return what there is to say of a state that has that number of partitions; else None."""
    if state.partitions != partitions:
        return None
    last = log.last_commit()
    batch = last.number if last else FIRST - 1
    return Rescaled(state=state, batch=batch, before=partitions, entries=0)


def check_rescale(log: BatchLog, state: StateRecord) -> Flow:
    """Return the plan of a state that can be rescaled; nothing is changed.

    Raises:
        StateError: It belongs to a backfill, or only a run can finish what is open.
    """
    plan = plan_of(log.load_plan(state.fingerprint))
    if plan.backfill is not None:
        raise StateError(
            f"'{plan.pipeline}' is the state of a backfill",
            hint="it goes when the backfill is done; `kaflow backfill … --restart` begins it again",
        )
    if log.store.exists(RESTORED):
        raise StateError(
            f"the state of pipeline '{plan.name}' was restored, and has not been run since",
            hint="run the pipeline once, `kaflow run … --until-caught-up`: it runs the batches "
            "again that came after the checkpoint",
        )
    batch = log.open_batch()
    if batch is not None and not _is_idle(batch, load_standing(log, state)):
        raise StateError(
            f"batch {batch.number} of pipeline '{plan.name}' was begun and is not done",
            hint="run the pipeline once, `kaflow run … --until-caught-up`: it finishes the batch",
        )
    return plan


def _is_idle(batch: BatchRecord, standing: Position) -> bool:
    """Tell whether a batch reads nothing and has nothing due, and so has no effect."""
    reads = batch.bounded_end or size_of(batch.ranges) > 0
    return not reads and not due_chains(
        clocks_at(batch.watermark, batch.batch_time), standing.next_due
    )


def _finish_idle_batch(log: BatchLog, state: StateRecord, plan: Flow, epoch: int) -> None:
    batch = log.open_batch()
    if batch is not None:
        _commit_idle(log, plan, load_standing(log, state), batch, epoch)


def _close_generation(
    log: BatchLog, state: StateRecord, plan: Flow, standing: Position, epoch: int
) -> None:
    """Log a batch that reads nothing, and does nothing whenever it is run again."""
    batch = log.begin(
        BatchRecord(
            number=standing.batch + 1,
            epoch=epoch,
            plan=state.fingerprint,
            batch_time=standing.batch_time,
            watermark={},  # nothing is due before the first event
            ranges=empty_ranges(standing.offsets),
            read_to_end=(),
            bounded_end=False,
            topic_ids=standing.topic_ids,
        )
    )
    _commit_idle(log, plan, standing, batch, epoch)


def _commit_idle(
    log: BatchLog, plan: Flow, standing: Position, batch: BatchRecord, epoch: int
) -> None:
    places = {(t, p): (t, p) in batch.read_to_end for t, ps in batch.ranges.items() for p in ps}
    watermark = advance(standing.watermark, clocks(plan), BatchReport(), batch.batch_time, places)
    log.commit(
        CommitRecord(
            number=batch.number,
            epoch=epoch,
            changes={},
            watermark=watermark.to_json(),
            next_due=dict(standing.next_due),
            counters=dict(standing.counters),
            states=standing.states,
        )
    )


def _forget_unfinished(snapshots: Store, ref: StateRef, last: int) -> None:
    """Remove what an interrupted rescale has left among the snapshots."""
    later = StateRef(ref.state_id, ref.generation + 1)
    names = snapshots.list("snapshots/")
    numbers = {name.split("/")[1] for name in names}
    for number in sorted(int(number) for number in numbers if number.isdecimal()):
        if number <= last and not _is_of(snapshots, later, number):
            continue
        own = [name for name in names if name.startswith(f"snapshots/{number}/")]
        for name in sorted(own, key=lambda name: name.count("/")):  # its manifest first
            snapshots.delete(name)


def _is_of(snapshots: Store, ref: StateRef, batch: int) -> bool:
    try:
        load_snapshot(snapshots, ref, batch)
    except Damaged:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Sources:
    """The partitions that there were."""

    directory: Path
    log: BatchLog
    snapshots: Store
    state: StateRecord
    batch: int

    def parts(self, step: int, start: int, stop: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Yield keys and values of the shards from `start` to before `stop`, in parts."""
        shard = start
        while shard < stop:
            part = part_of_shard(shard, self.state.partitions)
            end = min(stop, shards_of(part, self.state.partitions).stop)
            yield from self._parts(f"{step}-{part}", shard, end)
            shard = end

    def _parts(self, name: str, start: int, stop: int) -> Iterator[tuple[list[bytes], list[bytes]]]:
        first = bytes((start,))
        last = bytes((stop,)) if stop < SHARDS else None
        with ready_copy(
            self.directory / COPIES, name, self.state.ref, self.batch, self.log, self.snapshots
        ) as copy:
            while True:
                found = copy.range(first, last, _AT_ONCE)
                if found.keys:
                    yield found.keys, found.values
                if len(found.keys) < _AT_ONCE:
                    return
                first = found.keys[-1] + b"\0"


def _stage(
    folder: Path,
    sources: _Sources,
    plan: Flow,
    ref: StateRef,
    batch: int,
    snapshots: Store,
    now: int,
    say: Say,
) -> int:
    """Take the first snapshot of a new generation; return how many entries it has."""
    taken: dict[str, str] = {}
    entries = 0
    for step in state_names(plan):
        for part in range(plan.partitions):
            name = f"{step}-{part}"
            with open_copy(folder / name, ref) as copy:
                entries += _fill(copy, sources, step, shards_of(part, plan.partitions))
                copy.advance(batch, store=True)
                taken[name] = take_snapshot(snapshots, ref, name, copy)
            wipe(folder / name)
            say(f"partition {name}: {entries} entries so far")
    complete_snapshot(snapshots, ref, batch, now, taken)
    shutil.rmtree(folder, ignore_errors=True)
    return entries


def _fill(copy: RocksCopy, sources: _Sources, step: int, shards: range) -> int:
    entries = 0
    if shards:
        numbers = count(_BELOW_ALL)
        for keys, values in sources.parts(step, shards.start, shards.stop):
            copy.apply(to_changes(keys, values), next(numbers))
            entries += len(keys)
    return entries

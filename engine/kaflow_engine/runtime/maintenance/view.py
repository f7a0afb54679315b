"""A state as it was after one batch, to look at: made in a temporary directory, also while it runs.

Nothing of the state is opened that a run might want: partitions are built from the newest snapshot
that reaches the batch, and the change files behind it.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import state_names
from kaflow_engine.operators.rows.partitioning import SHARDS, part_of_shard, shards_of
from kaflow_engine.operators.watermark import WatermarkState
from kaflow_engine.runtime.planning.plan_codec import plan_of
from kaflow_engine.state.copies.copies import EMPTY, ready_copy
from kaflow_engine.state.copies.rocks import RocksCopy
from kaflow_engine.state.log.batch_log import FIRST, BatchLog
from kaflow_engine.state.reader import Entries, StateRef, successor
from kaflow_engine.state.storage.store import Store

AT_ONCE = 20_000
_TRIES = 5

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Which state, and after which batch."""

    ref: StateRef
    batch: int
    plan: Flow
    watermarks: Mapping[int, int]
    """Epoch milliseconds by chain; absent before its first record."""
    batch_time: int
    """Epoch milliseconds."""


@dataclass(slots=True)
class StateView:
    """The entries of a state after a batch; close it, or use `open_view`."""

    moment: Moment
    folder: Path
    log: BatchLog
    snapshots: Store
    say: Say
    _open: dict[str, RocksCopy] = field(default_factory=dict[str, RocksCopy])
    _stack: ExitStack = field(default_factory=ExitStack)

    def partition(self, step: int, part: int) -> RocksCopy:
        """Return a partition, which is built when it is first asked for."""
        name = f"{step}-{part}"
        if name not in self._open:
            self.say(f"reading partition {name}")
            copy = ready_copy(
                self.folder,
                name,
                self.moment.ref,
                self.moment.batch,
                self.log,
                self.snapshots,
            )
            self._open[name] = self._stack.enter_context(copy)
        return self._open[name]

    def ranges(
        self, step: int, side: int, shards: Sequence[int] = range(SHARDS)
    ) -> Iterator[Entries]:
        """Yield the entries of one side byte, in the order of their keys, in parts."""
        for shard in shards:
            copy = self.partition(step, part_of_shard(shard, self.moment.plan.partitions))
            start = bytes((shard, side))
            yield from entries_between(copy, start, successor(start))

    def everything(self, step: int) -> Iterator[Entries]:
        """Yield all entries of a step, in the order of their keys, in parts."""
        for part in range(self.moment.plan.partitions):
            if shards_of(part, self.moment.plan.partitions):
                yield from entries_between(self.partition(step, part), b"", None)

    def close(self) -> None:
        """Close all partitions."""
        self._stack.close()


@contextmanager
def open_view(
    log: BatchLog,
    snapshots: Store,
    at: int | None = None,
    say: Say = lambda text: None,
    parts: Sequence[tuple[int, int]] | None = None,
) -> Generator[StateView]:
    """Open a state as it was after a batch.

    Args:
        log: Its batch log.
        snapshots: Its snapshots.
        at: Which batch; None: the newest that is done.
        say: Called with what is done.
        parts: The partitions (step, partition) that will be read; None: all of them.

    Raises:
        StateError: There is no such batch any more, or what leads there is damaged.
    """
    for attempt in range(_TRIES):
        moment = moment_of(log, at)
        with TemporaryDirectory(prefix="kaflow-state-") as folder:
            view = StateView(moment, Path(folder), log, snapshots, say)
            try:
                try:
                    for step, part in parts if parts is not None else _all(moment.plan):
                        view.partition(step, part)
                except StateError:
                    # A run goes on meanwhile, and forgets what two snapshots have made needless.
                    if attempt == _TRIES - 1 or moment_of(log, at) == moment:
                        raise
                    continue
                yield view
                return
            finally:
                view.close()


def moment_of(log: BatchLog, at: int | None = None) -> Moment:
    """Return which generation and plan a batch had.

    Raises:
        StateError: There is no such batch, or no longer.
    """
    state = log.load_state()
    if state is None:
        raise StateError("there is no state here", hint="run the pipeline first")
    last = log.last_commit()
    newest = last.number if last else EMPTY
    if at is not None and at > newest:
        raise StateError(
            f"batch {at} is not done yet: the last one is {newest}", hint="name an earlier batch"
        )
    if last is None or (at == EMPTY and _first_commit(log) == FIRST):
        return Moment(
            ref=state.ref,
            batch=EMPTY,
            plan=plan_of(log.load_plan(state.fingerprint)),
            watermarks={},
            batch_time=state.created_ms,
        )
    number = newest if at is None else at
    first = _first_commit(log)
    if number < first:
        raise StateError(
            f"batch {number} is no longer there",
            hint=f"batches {first} to {newest} are: snapshots have made earlier ones needless",
        )
    commit, batch = log.load_commit(number), log.load_batch(number)
    now = number == newest  # its state may have been given another generation since
    ref = state.ref if now else StateRef(state.state_id, commit.generation)
    return Moment(
        ref=ref,
        batch=number,
        plan=plan_of(log.load_plan(state.fingerprint if now else batch.plan)),
        watermarks=WatermarkState.from_json(commit.watermark).values,
        batch_time=batch.batch_time,
    )


def _first_commit(log: BatchLog) -> int:
    names = (name.split("/")[1].removesuffix(".json") for name in log.store.list("commits/"))
    return min((int(name) for name in names if name.isdecimal()), default=EMPTY)


def _all(plan: Flow) -> list[tuple[int, int]]:
    return [(step, part) for step in state_names(plan) for part in range(plan.partitions)]


def entries_between(copy: RocksCopy, start: bytes, stop: bytes | None) -> Iterator[Entries]:
    """Yield the entries of a copy with `start` <= key < `stop`, in parts."""
    while True:
        found = copy.range(start, stop, AT_ONCE)
        if found.keys:
            yield found
        if len(found.keys) < AT_ONCE:
            return
        start = found.keys[-1] + b"\0"

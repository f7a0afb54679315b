"""What survives a crash of the local executor: batch log, change files, copies, and the sink.

The steps are those of `runtime/`, one after the other, with a point before and after each at which
a test may end the run.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.operators.watermark import WatermarkState
from kaflow_engine.plugins.state import Learned, States, after
from kaflow_engine.state.copies.memory import MemoryState
from kaflow_engine.state.kept import KEPT
from kaflow_engine.state.log.changes import last_per_key

Place = tuple[int, int]
"""A step, and a state partition of it."""

Protocol = Literal["batch_logged", "changes_applied", "changes_written", "delivered", "committed"]
"""The steps of a batch, in their order."""

Point = Callable[[str, Protocol], None]
"""Called with `before` or `after` and a step; ends the run by raising Crashed."""


class Crashed(Exception):
    """The run ends here; what is in `LocalWorld` stays.

    Args:
        copies_lost: Whether the local copies of the state are lost too.
    """

    def __init__(self, copies_lost: bool = False) -> None:
        super().__init__("the run was ended on purpose")
        self.copies_lost = copies_lost


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedBatch:
    """All that a batch depends on, written down before it runs."""

    number: int
    plan: Flow
    batch_time: int
    watermarks: Mapping[int, int]
    """By chain."""
    records: pa.Table
    behind: frozenset[tuple[str, int]] = frozenset()
    """Source partitions that were not read to their end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCommit:
    """The outcome of a batch."""

    plan: Flow
    changes: Mapping[Place, pa.Table]
    watermark: WatermarkState
    counters: Mapping[str, int]
    states: States
    """Of plugins, after it."""


@dataclass(slots=True)
class _Copy:
    state: MemoryState = field(default_factory=MemoryState)
    applied: int = 0


@dataclass(slots=True)
class _Answers:
    """What was answered in one batch; a crash does not take it."""

    _by_name: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    _rows: dict[str, list[pa.Table]] = field(default_factory=dict[str, list[pa.Table]])

    def kept(self, name: str) -> Mapping[str, Any] | None:
        return self._by_name.get(name)

    def keep(self, name: str, answer: Mapping[str, Any]) -> None:
        self._by_name[name] = answer

    def kept_rows(self, name: str) -> pa.Table:
        return pa.concat_tables([KEPT.empty_table(), *self._rows.get(name, [])])

    def keep_rows(self, name: str, rows: pa.Table) -> None:
        self._rows.setdefault(name, []).append(rows)


class LocalWorld:
    """The durable side of one pipeline.

    Args:
        point: Called at every step.
    """

    def __init__(self, point: Point) -> None:
        self.commits: list[LoggedCommit] = []
        self.begun: LoggedBatch | None = None
        """The batch that is logged and not committed."""
        self.answers = _Answers()
        self.learned = Learned()
        self.connections: dict[tuple[str, str], Mapping[str, str]] = {}
        """By kind and name, how databases are reached."""
        self._point = point
        self._files: dict[Place, pa.Table] = {}
        self._sink: list[pa.Table] = []
        self._delivered: set[int] = set()
        self._copies: dict[Place, _Copy] = {}

    def begin(self, batch: LoggedBatch) -> None:
        """Log a batch."""
        with self._at("batch_logged"):
            self.begun, self.answers = batch, _Answers()
            self._files, self._sink, self._delivered = {}, [], set()
            self.learned.clear()

    def state(self, place: Place) -> MemoryState:
        """Return a copy of the state as it was after the last commit."""
        copy = self._copies.setdefault(place, _Copy())
        while copy.applied < len(self.commits):
            with self._at("changes_applied"):
                changes = self.commits[copy.applied].changes.get(place)
                if changes is not None:
                    copy.state.apply(changes)
                copy.applied += 1
        return copy.state

    def write_changes(self, place: Place, changes: pa.Table) -> None:
        """Write a change file; a replay must write the same."""
        table = last_per_key(changes)
        with self._at("changes_written"):
            if not table.num_rows:
                return
            before = self._files.setdefault(place, table)
            if not before.equals(table):
                raise StateError(
                    f"state partition {place} was changed in two ways in one batch: by two tasks, "
                    "or by a replay"
                )

    def deliver(self, rows: pa.Table) -> None:
        """Commit rows together with a marker for each slot; what has a marker is not repeated."""
        slots = pc.unique(rows["slot"]).to_pylist()
        todo = [slot for slot in slots if slot not in self._delivered]
        with self._at("delivered"):
            self._sink.append(rows.filter(pc.is_in(rows["slot"], pa.array(todo, pa.int32()))))
            self._delivered |= set(todo)
        if len(todo) < len(slots):
            self._check_repeated(rows, slots)

    def commit(self, watermark: WatermarkState, counters: Mapping[str, int]) -> None:
        """Log that a batch is done."""
        with self._at("committed"):
            files = dict(self._files)
            assert self.begun is not None
            self.commits.append(
                LoggedCommit(
                    plan=self.begun.plan,
                    changes=files,
                    watermark=watermark,
                    counters=counters,
                    states=after(self.states, [self.learned.note()]),
                )
            )
            self.begun = None

    @property
    def states(self) -> States:
        """Return those of plugins, as the last commit has them."""
        return self.commits[-1].states if self.commits else {}

    def delivered(self) -> pa.Table:
        """Return what the newest batch has delivered."""
        return pa.concat_tables([OUTPUT.empty_table(), *self._sink])

    def lose_copies(self) -> None:
        """Lose the copies of the state; they are made again from the change files."""
        self._copies.clear()

    def _check_repeated(self, rows: pa.Table, slots: list[int]) -> None:
        kept = self.delivered()
        for slot in slots:
            want, got = (t.filter(pc.equal(t["slot"], slot)).to_pylist() for t in (kept, rows))
            if want != got:
                raise StateError(f"a replay gave other rows in slot {slot}: {got}, before: {want}")

    @contextmanager
    def _at(self, step: Protocol) -> Generator[None]:
        self._point("before", step)
        yield
        self._point("after", step)

"""The batch log: ranges of a batch written before it runs, results written after it."""

from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from kaflow_engine.errors import StateError
from kaflow_engine.state.log.by_chain import ByChain
from kaflow_engine.state.log.changes import ChangeFile
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.sealed import damaged, seal, unseal
from kaflow_engine.state.storage.store import Damaged, NameTaken, Store

FIRST = 1
"""Number of the first batch; the state after batch 0 is the empty one."""

STATE = "state.json"

Offsets = dict[str, dict[int, int]]
"""Topic to partition to offset."""

Ranges = dict[str, dict[int, tuple[int, int]]]
"""Topic to partition to first offset and the one after the last."""

TopicIds = dict[str, str]
"""Topic to the id that the brokers gave it; absent where they give none. Offsets belong to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRecord:
    """What is fixed about a state for as long as it, or its generation, lasts."""

    state_id: str
    generation: int
    partitions: int
    created_ms: int
    start: Offsets
    """Where each source partition began."""
    dimension_ends: Offsets
    """Up to where dimensions are loaded before events begin."""
    schemas: dict[str, dict[str, str]]
    """Topic to column to DuckDB type, as found when the state was created."""
    fingerprint: str
    """The plan the state was created, or last changed, for."""
    goal: Offsets = field(default_factory=dict[str, dict[int, int]])
    """Where a backfill ends; empty for a stream."""
    topic_ids: TopicIds = field(default_factory=dict[str, str])
    """Of the topics that `start`, `dimension_ends` and `goal` belong to."""
    added_behind: dict[str, int] = field(default_factory=dict[str, int])
    """Topic to the batch behind which it was added: what earlier ones read of it does not count."""

    @property
    def ref(self) -> StateRef:
        """What files and markers of this state carry."""
        return StateRef(self.state_id, self.generation)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecord:
    """Everything that must be equal when a batch is run again."""

    number: int
    epoch: int
    plan: str
    """Fingerprint of the plan."""
    batch_time: int
    """Epoch milliseconds."""
    watermark: ByChain
    """Of each chain; absent before its first event."""
    ranges: Ranges
    read_to_end: tuple[tuple[str, int], ...]
    """The partitions (topic, partition) that these ranges read to their end."""
    bounded_end: bool
    """Whether the inputs end here: the watermark after it is infinite."""
    topic_ids: TopicIds = field(default_factory=dict[str, str])
    """Of the topics that `ranges` belong to."""
    found: dict[str, Any] = field(default_factory=dict[str, Any])
    """What sources that are no topics must know to read `ranges` on another machine; opaque."""
    generation: int = 0
    """Set by the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRecord:
    """What a batch did, and what the next one starts from."""

    number: int
    epoch: int
    """Of the run that finished the batch."""
    changes: dict[str, ChangeFile | None]
    """Per state partition `<step>-<p>`; None, or absent, where nothing changed."""
    watermark: dict[str, Any]
    """For the log, opaque JSON."""
    next_due: ByChain
    """The watermark behind which something of a chain falls due; absent where nothing waits."""
    counters: dict[str, int] = field(default_factory=dict[str, int])
    states: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Of plugins, after it."""
    generation: int = 0
    """Set by the log."""


R = TypeVar("R", StateRecord, BatchRecord, CommitRecord)


class BatchLog:
    """State, batches, commits and plans of one pipeline, in a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        """Also holds the change files that commits name."""
        self._state: StateRecord | None = None

    def create_state(self, state: StateRecord) -> None:
        """Begin a new state; StateError if there is one."""
        self._create(STATE, state)
        self._state = state

    def replace_state(self, state: StateRecord) -> None:
        """Replace the record of the state: another generation, a topic added, another plan."""
        known = self.load_state()
        if known is None or known.state_id != state.state_id:
            raise StateError("only the state that is there can be changed")
        self.store.put(STATE, seal(_members(state)))
        self._state = state

    def load_state(self) -> StateRecord | None:
        """Return the record of the state, None if none was created."""
        if self.store.exists(STATE):
            self._state = self._read(STATE, StateRecord)
        return self._state

    def begin(self, batch: BatchRecord) -> BatchRecord:
        """Record a batch before its tasks run, as `batches/<N>.json`; return it as recorded.

        Raises:
            StateError: The batch exists, so another run is writing here.
        """
        if batch.number < FIRST:
            raise ValueError(f"batches are numbered from {FIRST}")
        recorded = replace(batch, generation=self._current().generation)
        self._create(f"batches/{batch.number}.json", recorded)
        return recorded

    def commit(self, commit: CommitRecord) -> CommitRecord:
        """Record the end of a batch, as `commits/<N>.json`; return it as recorded.

        A later epoch may commit what an earlier one began.

        Raises:
            StateError: The commit exists, so another run is writing here.
        """
        recorded = replace(commit, generation=self._current().generation)
        self._create(f"commits/{commit.number}.json", recorded)
        return recorded

    def load_batch(self, number: int) -> BatchRecord:
        """Return a recorded batch; Damaged if it is missing or altered."""
        return self._read(f"batches/{number}.json", BatchRecord)

    def load_commit(self, number: int) -> CommitRecord:
        """Return a recorded commit; Damaged if it is missing or altered."""
        return self._read(f"commits/{number}.json", CommitRecord)

    def last_commit(self) -> CommitRecord | None:
        """Return the newest commit, None before the first."""
        number = max(self._numbers("commits/"), default=None)
        return None if number is None else self.load_commit(number)

    def open_batch(self) -> BatchRecord | None:
        """Return the batch that was begun and not committed, None if there is none.

        Raises:
            Damaged: A commit has no batch, or a batch below it has no commit.
        """
        begun = max(self._numbers("batches/"), default=0)
        done = max(self._numbers("commits/"), default=0)
        if begun == done:
            return None
        if begun != done + 1:
            raise Damaged(
                f"the batch log has batch {begun}, but its last commit is {done}",
                hint="restore 'batches/' and 'commits/' from one backup",
            )
        return self.load_batch(begun)

    def next_number(self) -> int:
        """Return the number of the batch after the last commit."""
        return max(self._numbers("commits/"), default=FIRST - 1) + 1

    def save_plan(self, fingerprint: str, plan: str) -> None:
        """Keep a plan (JSON text) as `plans/<fingerprint>.json`; it may be there already."""
        name = f"plans/{fingerprint}.json"
        try:
            self.store.create(name, plan.encode())
        except NameTaken as error:
            if self.store.get(name) != plan.encode():
                raise Damaged(
                    f"'{name}' is not the plan of that fingerprint", hint="remove the file"
                ) from error

    def load_plan(self, fingerprint: str) -> str:
        """Return the plan (JSON text) of a fingerprint; Damaged if it is missing or another one."""
        name = f"plans/{fingerprint}.json"
        try:
            plan = self.store.get(name).decode()
        except UnicodeDecodeError as error:
            raise damaged(name) from error
        if plan_mark(plan) != fingerprint:
            raise damaged(name)
        return plan

    def prune(self, before: int) -> None:
        """Remove what belongs to batches below a number, and plans none names any more.

        Interrupted, it leaves what the next call removes.
        """
        for kind in ("batches/", "commits/", "changes/", "answers/"):
            for name in self.store.list(kind):
                if _number(name) < before:
                    self.store.delete(name)
        plans = self.store.list("plans/")
        if len(plans) < 2:
            return
        named = {self.load_batch(number).plan for number in self._numbers("batches/")}
        named.add(self._current().fingerprint)
        for name in plans:
            if name.removeprefix("plans/").removesuffix(".json") not in named:
                self.store.delete(name)

    def _current(self) -> StateRecord:
        state = self._state or self.load_state()
        if state is None:
            raise StateError("there is no state here", hint="create it before the first batch")
        return state

    def _create(self, name: str, record: StateRecord | BatchRecord | CommitRecord) -> None:
        members = _members(record)
        if not isinstance(record, StateRecord):
            members["state_id"] = self._current().state_id
        try:
            self.store.create(name, seal(members))
        except NameTaken as error:
            raise StateError(
                f"another run has written '{name}'",
                hint="one run at a time may write this state; stop the other one",
            ) from error

    def _read(self, name: str, kind: type[R]) -> R:
        members = unseal(name, self.store.get(name))
        if "generation" not in members:
            raise damaged(name)
        state = None if kind is StateRecord else self._current()
        if state is not None and (
            members.pop("state_id", None) != state.state_id
            or members["generation"] > state.generation
        ):
            raise Damaged(
                f"'{name}' belongs to another state than '{STATE}'",
                hint="restore the whole directory from one backup",
            )
        try:
            record = _adapter(kind).validate_python(members)
        except ValidationError as error:
            raise damaged(name) from error
        return cast(R, record)

    def _numbers(self, folder: str) -> list[int]:
        return [_number(name) for name in self.store.list(folder)]


def plan_mark(plan: str) -> str:
    """Return the fingerprint of a plan (JSON text): what two plans share only if they are equal."""
    return sha256(plan.encode()).hexdigest()[:16]


def _members(record: StateRecord | BatchRecord | CommitRecord) -> dict[str, Any]:
    return cast(dict[str, Any], _adapter(type(record)).dump_python(record, mode="json"))


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _number(name: str) -> int:
    part = name.split("/")[1].removesuffix(".json")
    if not part.isdecimal():
        raise Damaged(f"'{name}' has no batch number", hint="remove what kaflow did not write")
    return int(part)

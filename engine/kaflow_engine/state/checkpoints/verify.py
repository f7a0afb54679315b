"""Verifies a stored state: checksums, and that snapshots plus change files rebuild their batches.

Nothing of it is changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kaflow_engine.errors import StateError
from kaflow_engine.state.checkpoints.verify_copies import OLDER, Finding, Level, Walk
from kaflow_engine.state.copies.snapshots import load_snapshot, snapshot_batches
from kaflow_engine.state.hints import FROM_BACKUP
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord
from kaflow_engine.state.log.changes import read_changes
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import Damaged, Foreign, Store

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was checked, and what was found."""

    batches: int
    changes: int
    snapshots: int
    built: int
    """Partitions that snapshots and change files lead to the last batch."""
    compared: int
    """How often two ways to a partition led to the same: by snapshots, changes, copies of runs."""
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Nothing is damaged."""
        return all(finding.level != "damaged" for finding in self.findings)


@dataclass(slots=True)
class _Tally:
    findings: list[Finding] = field(default_factory=list[Finding])
    batches: int = 0
    changes: int = 0
    snapshots: int = 0
    built: int = 0
    compared: int = 0

    def add(self, file: str, what: str, cure: str, level: Level = "damaged") -> None:
        finding = Finding(level=level, file=file, what=what, cure=cure)
        if all(known.file != file for known in self.findings):
            self.findings.append(finding)


def verify(
    log: Store,
    snapshots: Store,
    scratch: Path,
    partitions: Callable[[str], Sequence[str]],
    say: Say = lambda text: None,
    copies: Path | None = None,
) -> Verified:
    """Check what is stored of one state.

    Args:
        log: Where the batch log and the change files are.
        snapshots: Where snapshots are.
        scratch: An empty directory to build partitions in.
        partitions: Plan (JSON text) to the state partitions that it has, `<step>-<p>`.
        say: Called with what is done.
        copies: The copies that runs use, if they may be looked at: the lease is held.

    Raises:
        StateError: The disk is full or forbidden.
    """
    tally = _Tally()
    batches = BatchLog(log)
    try:
        state = batches.load_state()
    except Damaged as error:
        tally.add("state.json", error.message, _RESTORE_ALL)
        return _result(tally)
    if state is None:
        tally.add("state.json", "there is none", _RESTORE_ALL)
        return _result(tally)
    names = _check_plan(batches, state, partitions, tally)
    say("checking batches and change files")
    done = _check_log(batches, state, tally)
    say("checking snapshots")
    sound = _check_snapshots(snapshots, state, done, tally)
    for name in names:
        say(f"building partition {name}")
        walk = Walk(name, state.ref, batches, snapshots, scratch, copies)
        walk.check(sound, done)
        tally.built += walk.built
        tally.compared += walk.compared
        for problem in walk.problems:
            tally.add(problem.file, problem.what, problem.cure, problem.level)
    return _result(tally)


_RESTORE = "restore this file from a backup"
_RESTORE_ALL = "restore the whole directory from one backup, or give the pipeline a new `id:`"


def _result(tally: _Tally) -> Verified:
    return Verified(
        batches=tally.batches,
        changes=tally.changes,
        snapshots=tally.snapshots,
        built=tally.built,
        compared=tally.compared,
        findings=tuple(tally.findings),
    )


def _check_plan(
    log: BatchLog,
    state: StateRecord,
    partitions: Callable[[str], Sequence[str]],
    tally: _Tally,
) -> Sequence[str]:
    text = _plan(log, state.fingerprint, tally)
    try:
        return () if text is None else partitions(text)
    except ValueError as error:
        what = f"it is no plan: {str(error).partition(chr(10))[0]}"
        tally.add(f"plans/{state.fingerprint}.json", what, _RESTORE)
        return ()


def _plan(log: BatchLog, mark: str, tally: _Tally) -> str | None:
    """Return a plan; None if it is missing or another one."""
    return _try(tally, f"plans/{mark}.json", lambda: log.load_plan(mark), _RESTORE)


def _check_log(log: BatchLog, state: StateRecord, tally: _Tally) -> int:
    """Check batches, commits and change files; return the last batch that is done."""
    done = _numbers(log.store, "commits/")
    begun = _numbers(log.store, "batches/")
    plans: set[str] = set()
    last, first = max(done, default=0), min([*done, *begun], default=1)
    for number in range(first, max([last, *begun], default=0) + 1):
        batch = _try(
            tally, f"batches/{number}.json", lambda n=number: log.load_batch(n), FROM_BACKUP
        )
        tally.batches += 1
        plans |= {batch.plan} if batch else set()
        if number > last:
            continue
        commit = _try(
            tally, f"commits/{number}.json", lambda n=number: log.load_commit(n), FROM_BACKUP
        )
        for name, file in commit.changes.items() if commit else ():
            if file is None:
                continue
            tally.changes += 1
            ref = StateRef(state.state_id, commit.generation if commit else 0)
            _try(
                tally,
                file.file,
                lambda n=number, p=name, f=file, r=ref: read_changes(log.store, r, n, p, f),
                "nothing need be done where a snapshot was taken later; else " + FROM_BACKUP,
            )
    for mark in sorted(plans - {state.fingerprint}):
        _plan(log, mark, tally)
    return last


def _check_snapshots(store: Store, state: StateRecord, last: int, tally: _Tally) -> list[int]:
    """Check the files of all snapshots; return those of this generation, oldest first."""
    own: list[int] = []
    for batch in sorted(snapshot_batches(store)):
        tally.snapshots += 1
        name = f"snapshots/{batch}/manifest.json"
        try:
            manifest = load_snapshot(store, state.ref, batch)
        except Foreign:
            what = "it belongs to another generation of the state"
            tally.add(name, what, "nothing need be done: it goes with the next snapshots", "note")
            continue
        except Damaged as error:
            tally.add(name, error.message, OLDER)
            continue
        if batch > last:
            tally.add(
                name, f"the log ends at batch {last}", "restore the newer log, if there is one"
            )
            continue
        steps = {part.partition("-")[0] for part in manifest.partitions}
        wanted = {f"{step}-{part}" for step in steps for part in range(state.partitions)}
        if wanted != manifest.partitions.keys():
            lacking = ", ".join(sorted(wanted ^ manifest.partitions.keys()))
            tally.add(name, f"its partitions are not those of the state: {lacking}", OLDER)
            continue
        own.append(batch)
    return own


def _try(tally: _Tally, file: str, action: Callable[[], T], cure: str) -> T | None:
    try:
        return action()
    except Damaged as error:
        tally.add(file, error.message, cure)
    except StateError:
        raise
    except Exception as error:  # what pyarrow says of a file that is none
        tally.add(file, f"it cannot be read: {type(error).__name__}", cure)
    return None


def _numbers(store: Store, folder: str) -> list[int]:
    names = (name.removeprefix(folder).removesuffix(".json") for name in store.list(folder))
    return [int(name) for name in names if name.isdecimal()]

"""What would happen if a pipeline were started: read from its state directory, nothing changed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kaflow_engine.errors import StateError
from kaflow_engine.model.columns import Column
from kaflow_engine.plan.diff import WAY_OUT, Document, differences, obstacles
from kaflow_engine.state.lease import find_holder
from kaflow_engine.state.log import BatchLog, StateRecord
from kaflow_engine.state.store import LocalStore

Outlook = Literal["new", "resume", "refused", "running"]

CHANGES = "the state goes on with the new plan:"
OTHERS = "changed too, and no obstacle:"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """What a state directory holds."""

    directory: Path
    state: StateRecord | None = None
    """None: no state was created here."""
    committed: int = 0
    """The last batch that is done; 0 before the first."""
    opened: int | None = None
    """A batch that was begun and is not done."""
    watermark: int | None = None
    """Epoch milliseconds, after the last batch that is done."""
    holder: str | None = None
    """Who runs the pipeline now."""
    damage: str | None = None
    """Why the state cannot be read."""

    @property
    def columns(self) -> dict[str, tuple[Column, ...]]:
        """The columns that were pinned when the state was created."""
        schemas = self.state.schemas if self.state else {}
        return {
            topic: tuple(Column(name, kind) for name, kind in columns.items())
            for topic, columns in schemas.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a start would do, and why."""

    outlook: Outlook
    reasons: tuple[str, ...] = ()
    batch: int | None = None
    """The first batch that would run."""
    watermark: int | None = None
    """Epoch milliseconds."""


def read_state(directory: Path) -> StoredState:
    """Read where a pipeline stands; a directory that does not exist holds no state."""
    log = BatchLog(LocalStore(directory))
    found = find_holder(directory)
    holder = None if found is None else f"{found} runs it"
    try:
        state = log.load_state()
        if state is None:
            return StoredState(directory=directory, holder=holder)
        commit, opened = log.last_commit(), log.open_batch()
    except StateError as error:
        return StoredState(directory=directory, holder=holder, damage=str(error))
    return StoredState(
        directory=directory,
        state=state,
        committed=commit.number if commit else 0,
        opened=opened.number if opened else None,
        watermark=_watermark(commit.watermark) if commit else None,
        holder=holder,
    )


def stored_plan(stored: StoredState) -> Document | None:
    """Return the plan that the state was made for, None if there is no state.

    Raises:
        StateError: It is missing or damaged.
    """
    if stored.state is None:
        return None
    text = BatchLog(LocalStore(stored.directory)).load_plan(stored.state.fingerprint)
    return json.loads(text)


def pinned_schema_ids(stored: StoredState) -> dict[str, int]:
    """Return, by topic, the schema that others are compared with, where the state has one.

    Raises:
        StateError: The plan of the state is missing or damaged.
    """
    plan = stored_plan(stored)
    topics = plan.get("topics", ()) if plan else ()
    return {t["name"]: t["schema_id"] for t in topics if t.get("schema_id") is not None}


def judge(stored: StoredState, old: Document | None, new: Document) -> Verdict:
    """Decide what a start would do.

    Args:
        stored: What the state directory holds.
        old: The plan of the state, as JSON.
        new: The plan of the file with the partitions of the state, as JSON.
    """
    changes = differences(old, _registered(new, old)) if old else ()
    against = obstacles(old, new) if old else ()
    if stored.holder is not None:
        return Verdict(
            outlook="running",
            reasons=(stored.holder, *changes),
            watermark=stored.watermark,
        )
    if stored.damage is not None:
        return Verdict(outlook="refused", reasons=(stored.damage,))
    if stored.state is None or old is None:
        return Verdict(outlook="new", reasons=("there is no state yet",), batch=1)
    if against:
        others = _headed(OTHERS, [line for line in changes if line not in against])
        reasons = (*against, *others, WAY_OUT)
        return Verdict(outlook="refused", reasons=reasons, watermark=stored.watermark)
    again = () if stored.opened is None else (f"batch {stored.opened} is run again first",)
    return Verdict(
        outlook="resume",
        reasons=(*again, *_headed(CHANGES, changes)),
        batch=stored.committed + 1,
        watermark=stored.watermark,
    )


def _headed(head: str, lines: Sequence[str]) -> tuple[str, ...]:
    return (head, *lines) if lines else ()


def _registered(new: Document, old: Document) -> Document:
    """Give an Avro output the id of the state's plan: only a registry could tell another."""
    finish, before = new.get("finish"), old.get("finish")
    if not finish or not before or finish.get("avro_schema") != before.get("avro_schema"):
        return new
    return {**new, "finish": {**finish, "avro_id": before.get("avro_id")}}


def _watermark(state: Mapping[str, Any]) -> int | None:
    value = state.get("value")
    return value if isinstance(value, int) else None

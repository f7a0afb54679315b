"""What a start would do with an existing state; looking changes nothing."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.watermark import WatermarkState
from kaflow_engine.plan.evolution.chain import Document, document_of, ends_of, is_chain
from kaflow_engine.plan.evolution.diff import obstacles
from kaflow_engine.plan.evolution.diff_text import differences
from kaflow_engine.plan.evolution.evolution import migrations
from kaflow_engine.state.log.approval import Begin
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord
from kaflow_engine.state.storage.lease import find_holder
from kaflow_engine.state.storage.store import LocalStore

Status = Literal["unchanged", "kept", "migrated", "rebuild", "new", "removed", "unclear", "damaged"]
"""`kept`, `migrated`: the state goes on with the new plan, and `migrated` where stored values are
read otherwise; `rebuild`: it does not; `unclear`: no one has looked for columns that are wanted."""

DECIDE: frozenset[Status] = frozenset({"rebuild", "unclear", "damaged"})
"""With these a start is refused, or may be."""

OTHERS = "changed too, and no obstacle:"
LOOKS = 3
"""How often a state is read that seems damaged while someone writes it."""


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

    status: Status
    reasons: tuple[str, ...] = ()
    batch: int | None = None
    """The first batch that would run."""
    watermark: int | None = None
    """Epoch milliseconds."""
    running: str | None = None
    """Who runs it now, with the old plan."""
    approved: Begin | None = None
    """A rebuild was approved, and from where its events begin."""

    @property
    def decided(self) -> bool:
        """Whether a start needs no one's decision any more."""
        return self.status not in DECIDE or self.approved is not None


def read_state(directory: Path) -> StoredState:
    """Read where a pipeline stands; a directory that does not exist holds no state."""
    found = _read_state(directory)
    for _ in range(LOOKS - 1):
        if found.damage is None or found.holder is None:
            break
        found = _read_state(directory)
    return found


def _read_state(directory: Path) -> StoredState:
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
        watermark=WatermarkState.from_json(commit.watermark).least if commit else None,
        holder=holder,
    )


def stored_plan(stored: StoredState) -> str | None:
    """Return the plan that the state was made for, as JSON; None if there is no state.

    Raises:
        StateError: It is missing or damaged.
    """
    if stored.state is None:
        return None
    return BatchLog(LocalStore(stored.directory)).load_plan(stored.state.fingerprint)


def pinned_schema_ids(stored: StoredState) -> dict[str, int]:
    """Return, by topic, the schema that others are compared with, where the state has one.

    Raises:
        StateError: The plan of the state is missing or damaged.
    """
    topics = _stored_topics(stored)
    return {t["name"]: t["schema_id"] for t in topics if t.get("schema_id") is not None}


def known_record_columns(stored: StoredState) -> dict[str, set[str]]:
    """Return, by topic, the record columns that the plan of the state uses.

    Raises:
        StateError: The plan of the state is missing or damaged.
    """
    return {
        topic["name"]: {column["name"] for column in topic.get("record_columns", ())}
        for topic in _stored_topics(stored)
    }


def _stored_topics(stored: StoredState) -> Sequence[Document]:
    text = stored_plan(stored)
    plan: Document = json.loads(text) if text else {}
    return plan.get("topics" if is_chain(plan) else "sources", ())


def judge(
    stored: StoredState, old: Flow | None, new: Flow, approved: Begin | None = None
) -> Verdict:
    """Decide what a start would do.

    Args:
        stored: What the state directory holds.
        old: The plan of the state.
        new: The plan of the file, as it inherits the state.
        approved: Where someone let the state be rebuilt.
    """
    if stored.damage is not None:
        return Verdict(status="damaged", reasons=(stored.damage,), running=stored.holder)
    if stored.state is None or old is None:
        return Verdict(
            status="new", reasons=("there is no state yet",), batch=1, running=stored.holder
        )
    changes = differences(document_of(old), _registered(document_of(new), document_of(old)))
    if against := obstacles(old, new):
        others = _headed(OTHERS, [line for line in changes if line not in against])
        return Verdict(
            status="rebuild",
            reasons=(*against, *others),
            batch=1 if approved else None,
            watermark=stored.watermark,
            running=stored.holder,
            approved=approved,
        )
    again = () if stored.opened is None else (f"batch {stored.opened} is run again first",)
    read = migrations(old, new)
    return Verdict(
        status="migrated" if read else "kept" if changes else "unchanged",
        reasons=(*again, *read, *changes),
        batch=stored.committed + 1,
        watermark=stored.watermark,
        running=stored.holder,
    )


def _headed(head: str, lines: Sequence[str]) -> tuple[str, ...]:
    return (head, *lines) if lines else ()


def _registered(new: Document, old: Document) -> Document:
    """Give Avro outputs the ids of the state's plan: only a registry could tell others."""
    ends, before = ends_of(new), ends_of(old)
    if len(ends) == len(before) == 1:
        before = dict(zip(ends, before.values(), strict=True))
    known = {
        name: {**end, "avro_id": before[name].get("avro_id")}
        if name in before and end.get("avro_schema") == before[name].get("avro_schema")
        else end
        for name, end in ends.items()
    }
    if "outputs" in new:
        return {**new, "outputs": known}
    return {**new, "finish": next(iter(known.values()))}

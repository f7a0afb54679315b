"""What a person decided about a state that does not fit its file, in the state's own directory.

`approved.json` is the decision. Whoever starts the pipeline makes `rebuild.json` of it, which stays
until the new state runs, so that an interrupted start is gone on with. The old state moves to
`old/<state id>/`; nothing is deleted.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from kaflow_engine.errors import StateError
from kaflow_engine.state.log.batch_log import STATE, Offsets, TopicIds
from kaflow_engine.state.storage.store import Damaged, LocalStore, Store

Begin = Literal["continue", "earliest", "latest"]
"""Where event topics begin again: where the old state ended, or as a new pipeline may."""

APPROVED, REBUILD, OLD = "approved.json", "rebuild.json", "old"
_STAY = frozenset({"lease", APPROVED, REBUILD, OLD})


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A decision: this state may be rebuilt for that plan, once."""

    pipeline: str
    """The stable id."""
    old: str
    """Fingerprint of the plan that the state was made for."""
    new: str
    """Fingerprint of the plan that was approved, without what only a registry knows."""
    begin: Begin
    reasons: tuple[str, ...]
    """What was approved, in words."""
    by: str
    at: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """A decision that is being carried out."""

    approval: Approval
    state_id: str
    """The old state."""
    generation: int
    epoch: int
    """The last run of the old state."""
    offsets: Offsets
    """Where the old state ended: what would have been read next."""
    topic_ids: TopicIds = field(default_factory=dict[str, str])
    """Of the topics that `offsets` belong to."""

    @property
    def states(self) -> frozenset[tuple[str, int]]:
        """The states of which the pipeline's own topic may hold markers."""
        return frozenset((self.state_id, n) for n in range(1, self.generation + 1))


R = TypeVar("R", Approval, Rebuild)


def load_approval(store: Store) -> Approval | None:
    """Return the decision about a state, None where no one has decided; Damaged if unreadable."""
    return _load(store, APPROVED, Approval)


def save_approval(store: Store, approval: Approval) -> None:
    """Write a decision; it replaces an earlier one."""
    store.put(APPROVED, _adapter(Approval).dump_json(approval, indent=1))


def load_rebuild(store: Store) -> Rebuild | None:
    """Return the decision that is being carried out, None where there is none."""
    return _load(store, REBUILD, Rebuild)


def begin_rebuild(store: Store, rebuild: Rebuild) -> None:
    """Use up a decision: from here on the old state is on its way out."""
    store.put(REBUILD, _adapter(Rebuild).dump_json(rebuild, indent=1))
    store.delete(APPROVED)


def is_made(directory: Path, rebuild: Rebuild) -> bool:
    """Tell whether the new state is there already."""
    store = LocalStore(directory)
    if not store.exists(STATE):
        return False
    state = cast(dict[str, Any], json.loads(store.get(STATE)))
    return state["state_id"] != rebuild.state_id


def set_aside(directory: Path, rebuild: Rebuild) -> Path:
    """Move the old state away, unless a new one is there; interrupted, the next call goes on.

    Returns:
        Where it is.

    Raises:
        StateError: It cannot be moved.
    """
    target = directory / OLD / rebuild.state_id
    if is_made(directory, rebuild):
        return target
    try:
        target.mkdir(parents=True, exist_ok=True)
        # the record first: without it, what is left is no state
        names = sorted(path.name for path in directory.iterdir() if path.name not in _STAY)
        for name in sorted(names, key=lambda name: name != STATE):
            if not (target / name).exists():  # else a new start has begun to write it
                (directory / name).rename(target / name)
    except OSError as error:
        raise StateError(
            f"cannot move the old state to '{target}': {(error.strerror or '').lower()}",
            hint="check free space and permissions of this directory",
        ) from error
    return target


def end_rebuild(store: Store, rebuild: Rebuild) -> None:
    """Note beside the old state what became of it: the new one runs."""
    store.put(f"{OLD}/{rebuild.state_id}/{REBUILD}", _adapter(Rebuild).dump_json(rebuild, indent=1))
    store.delete(REBUILD)


def _load(store: Store, name: str, kind: type[R]) -> R | None:
    if not store.exists(name):
        return None
    try:
        return cast(R, _adapter(kind).validate_json(store.get(name)))
    except ValidationError as error:
        raise Damaged(
            f"'{name}' is damaged", hint="remove it, and approve the rebuild again"
        ) from error


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

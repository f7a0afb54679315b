"""The state of a plugin: values by key that are committed with a batch.

A batch sees it as the one before left it, and nothing of what the batch itself adds: so whatever is
made of rows is the same in however many tasks, and however often, a batch runs. What rows add is
merged when the batch is committed.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kaflow_engine.errors import KaflowError, SinkUnfit
from kaflow_engine.plugins.installed import loaded

MOST_BYTES = 256 << 10
"""Of the JSON of one state: each batch writes all of it."""


class Owner(NamedTuple):
    """Whose state it is."""

    group: str
    """Of entry points."""
    plugin: str
    name: str
    """Of the relation or output."""

    @property
    def text(self) -> str:
        """What commits call it."""
        return ":".join(self)

    @staticmethod
    def of(text: str) -> "Owner":
        """Return whose state it is that commits call so."""
        return Owner(*text.split(":", 2))


States = Mapping[str, Mapping[str, Any]]
"""By `Owner.text` and key: values as JSON has them."""

Added = tuple[str, Any]
"""A key, and what a row adds to the value under it."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What the rows of one task add to states.

    A task may call a transform again for rows that it had before: each counts once.
    """

    _by_row: dict[Owner, dict[str, Sequence[Added]]] = field(
        default_factory=dict[Owner, dict[str, Sequence[Added]]]
    )

    def take(self, owner: Owner, rows: Mapping[str, Sequence[Added]]) -> None:
        """Take what rows add.

        Args:
            owner: To whose state.
            rows: By what tells a row from all others of the batch.
        """
        self._by_row.setdefault(owner, {}).update(rows)

    def clear(self) -> None:
        """Forget it all."""
        self._by_row.clear()

    def note(self) -> dict[str, dict[str, Any]]:
        """Return, by owner and key, what all rows together add: data for JSON."""
        return {
            owner.text: merged(owner, {}, (each for added in rows.values() for each in added))
            for owner, rows in self._by_row.items()
        }


def after(before: States, notes: Iterable[States]) -> dict[str, dict[str, Any]]:
    """Return the states after a batch.

    Args:
        before: Those before it.
        notes: What its tasks have added.

    Raises:
        SinkUnfit: A plugin cannot merge, or keeps too much.
    """
    found = {text: dict(values) for text, values in before.items()}
    added: dict[str, list[Added]] = {}
    for note in notes:
        for text, values in note.items():
            added.setdefault(text, []).extend(values.items())
    for text, values in added.items():
        owner, known = Owner.of(text), found.get(text, {})
        new = {**known, **merged(owner, known, values)}
        kept = {key: value for key, value in new.items() if value is not None}
        if (size := len(json.dumps(kept))) > MOST_BYTES:
            raise SinkUnfit(
                f"the state of plugin '{owner.plugin}' of '{owner.name}' has {size:,} bytes",
                hint=f"it may have {MOST_BYTES:,}: let 'merge' of the plugin return None for keys "
                "that are no longer needed",
            )
        found[text] = kept
    return found


def merged(owner: Owner, before: Mapping[str, Any], added: Iterable[Added]) -> dict[str, Any]:
    """Return the new values of the keys to which something is added.

    Raises:
        SinkUnfit: A key is no text, the plugin cannot merge values, or it makes what JSON cannot
            hold.
    """
    called = f"plugin '{owner.plugin}' of '{owner.name}'"
    by_key: dict[Any, list[Any]] = {}
    try:
        for key, value in added:
            by_key.setdefault(key, []).append(value)
        if wrong := [key for key in by_key if not isinstance(key, str)]:
            raise SinkUnfit(
                f"{called} learns under the key {wrong[0]!r}, which is no text",
                hint="a state is JSON: give keys as texts",
            )
        kind = loaded(owner.group, owner.plugin)
        found = {key: kind.merge(key, before.get(key), by_key[key]) for key in sorted(by_key)}
        return json.loads(json.dumps(found))
    except KaflowError:
        raise
    except Exception as error:
        raise SinkUnfit(
            f"{called} cannot merge its state: {type(error).__name__}: {error}",
            hint="correct 'merge' of the plugin; then start the pipeline, and the batch runs again",
        ) from error

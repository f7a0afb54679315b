"""What stands in a file, before anything is known about its meaning: text, lists, mappings.

Scalars stay text until a specification says what they are, so that `key: on`, a variable and an
environment setting are read alike. Every node knows its place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from kaflow_engine.errors import Location
from kaflow_engine.model.spec import Path

Plain: TypeAlias = "str | int | float | bool | list[Plain] | dict[str, Plain] | None"

LONGEST = 60
"""Most characters of a text that an error shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """One value."""

    at: Location
    text: str | None
    """The value as text, variables expanded; None: nothing was written."""
    written: str
    """What the author wrote, variables not expanded: errors show this."""
    value: str | int | float | bool | None
    """The value as YAML reads it."""
    broken: bool = False
    """A mistake in it was already reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list."""

    at: Location
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A key and its value."""

    key: str
    at: Location
    value: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """A mapping; keys are distinct."""

    at: Location
    entries: tuple[Entry, ...]
    misspelled: frozenset[str] = frozenset()
    """Keys that were meant, as far as it can be guessed, by keys that do not exist."""

    def get(self, *path: str) -> "Node | None":
        """Return what stands under nested keys, None if there is nothing."""
        node: Node = self
        for key in path:
            if not isinstance(node, Entries):
                return None
            found = next((entry.value for entry in node.entries if entry.key == key), None)
            if found is None:
                return None
            node = found
        return None if isinstance(node, Scalar) and node.text is None else node


Node: TypeAlias = Scalar | Items | Entries


def describe(node: Node) -> str:
    """Name the kind of a node for an error: `text`, `a list`, …"""
    match node:
        case Items():
            return "a list"
        case Entries():
            return "a mapping"
        case Scalar(text=None):
            return "nothing"
        case Scalar(value=bool()):
            return "true or false"
        case Scalar(value=int() | float()):
            return "a number"
        case Scalar():
            return "text"


def brief(text: str) -> str:
    """Shorten text of an author to what an error can show on its line."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def from_plain(value: object, at: Location) -> Node:
    """Take plain Python data for what an author wrote at one place."""
    if isinstance(value, Mapping):
        pairs = cast(Mapping[object, object], value).items()
        entries = (Entry(key=str(key), at=at, value=from_plain(item, at)) for key, item in pairs)
        return Entries(at=at, entries=tuple(entries))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items = cast(Sequence[object], value)
        return Items(at=at, items=tuple(from_plain(item, at) for item in items))
    if value is None:
        return Scalar(at=at, text=None, written="", value=None)
    if isinstance(value, bool):
        text = "true" if value else "false"
        return Scalar(at=at, text=text, written=text, value=value)
    known = value if isinstance(value, int | float) else str(value)
    return Scalar(at=at, text=str(value), written=str(value), value=known)


def to_plain(node: Node) -> Plain:
    """Return a node as Python data, scalars as YAML reads them."""
    match node:
        case Scalar():
            return node.value
        case Items():
            return [to_plain(item) for item in node.items]
        case Entries():
            return {entry.key: to_plain(entry.value) for entry in node.entries}


def find(node: Node, path: Path) -> Node | None:
    """Return the node at a path, None if there is none."""
    for step in path:
        match node:
            case Entries(entries=entries):
                found = next((entry.value for entry in entries if entry.key == step), None)
            case Items(items=items) if isinstance(step, int) and step < len(items):
                found = items[step]
            case _:
                found = None
        if found is None:
            return None
        node = found
    return node


def walk(node: Node, path: Path = ()) -> Iterator[tuple[Path, Location, Node]]:
    """Yield every key and list item below a node: its path, its place, its value."""
    match node:
        case Scalar():
            return
        case Items():
            below = [(index, item.at, item) for index, item in enumerate(node.items)]
        case Entries():
            below = [(entry.key, entry.at, entry.value) for entry in node.entries]
    for step, at, value in below:
        yield (*path, step), at, value
        yield from walk(value, (*path, step))


def lay_over(below: Node, above: Node) -> Node:
    """Merge mappings key by key; anything else from above replaces what is below."""
    if not isinstance(below, Entries) or not isinstance(above, Entries):
        return above
    merged = {entry.key: entry for entry in below.entries}
    for entry in above.entries:
        old = merged.get(entry.key)
        value = lay_over(old.value, entry.value) if old else entry.value
        merged[entry.key] = Entry(key=entry.key, at=entry.at, value=value)
    return Entries(at=below.at, entries=tuple(merged.values()))


def without(node: Node, path: Path) -> Node:
    """Return a tree without what stands at a path."""
    if not path or not isinstance(node, Entries):
        return node
    kept = [
        entry if entry.key != path[0] else replace(entry, value=without(entry.value, path[1:]))
        for entry in node.entries
        if entry.key != path[0] or len(path) > 1
    ]
    return replace(node, entries=tuple(kept))


def text_at(tree: Entries, *path: str) -> str | None:
    """Return the text of the scalar at a place; None where there is none."""
    node = tree.get(*path)
    return node.text if isinstance(node, Scalar) else None

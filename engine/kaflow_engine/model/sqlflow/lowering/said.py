"""A SQLFlow file with the places of what it says."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, Entry, Node, Scalar, find, from_plain
from kaflow_engine.model.sqlflow.specs import SqlflowSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlText:
    """SQL, and where its first line stands."""

    text: str
    at: Location

    def line(self, number: int) -> Location:
        """Return the place of a line of it, counted from 1."""
        return self.at if self.at.line is None else replace(self.at, line=self.at.line + number - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The tree of a file, and the places of what stands in it."""

    tree: Entries
    file: Path
    start: Location

    def at(self, *path: str | int) -> Location:
        """Return where a key stands; of an absent one, what encloses it."""
        return place(self.tree, path)

    def sql(self, *path: str | int) -> SqlText:
        """Return the SQL under a key that is there."""
        node = find(self.tree, path)
        assert isinstance(node, Scalar)
        return SqlText(text=node.text or "", at=node.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Placed):
    """A pipeline whose form is right."""

    spec: SqlflowSpec


@dataclass(slots=True)
class Mistakes:
    """What is wrong, collected."""

    found: list[ModelError] = field(default_factory=list[ModelError])

    def add(self, message: str, at: Location, hint: str) -> None:
        """Note one."""
        self.found.append(ModelError(message, at, hint))


def mapping(at: Location, *entries: Entry) -> Entries:
    """Return a mapping of entries."""
    return Entries(at=at, entries=entries)


def entry(key: str, value: object, at: Location) -> Entry:
    """Return a key with a plain value, or with a node, both of one place."""
    node: Node = value if isinstance(value, Entries) else from_plain(value, at)
    return Entry(key=key, at=at, value=node)


def sql_entry(key: str, text: str, at: Location) -> Entry:
    """Return a key whose value is SQL that stands at a place."""
    return Entry(key=key, at=at, value=Scalar(at=at, text=text, written=text, value=text))


def listed(names: Sequence[str]) -> str:
    """Return names for a hint."""
    return ", ".join(names) or "none"

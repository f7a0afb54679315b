"""The keys of a pipeline file, built up with the places where a Streamling file says them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.brought.settings import Setting
from kaflow_engine.model.files.tree import Entries, Entry, Items, Node, from_plain


@dataclass(frozen=True, slots=True)
class Placed:
    """A value that stands somewhere else than what it belongs to."""

    value: object
    at: Location


def said(at: Location, values: Mapping[str, object]) -> Entries:
    """Return a mapping; values that are None are not said."""
    entries = (_entry(key, value, at) for key, value in values.items() if value is not None)
    return Entries(at=at, entries=tuple(entries))


def _entry(key: str, value: object, at: Location) -> Entry:
    if isinstance(value, Placed):
        return Entry(key=key, at=value.at, value=from_plain(value.value, value.at))
    return Entry(key=key, at=at, value=from_plain(value, at))


@dataclass(slots=True)
class Parts:
    """What a pipeline file would say, as far as it is known."""

    taken: set[str]
    """Names that relations cannot have: those of topics."""
    sources: dict[str, Entries] = field(default_factory=dict[str, Entries])
    topics: dict[str, Entries] = field(default_factory=dict[str, Entries])
    relations: dict[str, Entries] = field(default_factory=dict[str, Entries])
    outputs: list[Entries] = field(default_factory=list[Entries])
    """One for each sink, in their order."""
    landing: list[Entries] = field(default_factory=list[Entries])
    """Outputs beside those of sinks."""
    adds: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Fields that the scripts of relations set."""
    settings: dict[tuple[str, ...], Setting] = field(default_factory=dict[tuple[str, ...], Setting])
    """Of the configuration, by path."""
    meta: dict[str, str] = field(default_factory=dict[str, str])
    mistakes: list[ModelError] = field(default_factory=list[ModelError])

    def free(self, name: str) -> str:
        """Return a name for a relation or a source that nothing else has."""
        while name in self.taken or name in self.relations or name in self.sources:
            name += "_"
        return name

    def tree(self, name: str, at: Location) -> Entries:
        """Return the keys of the pipeline file."""
        entries = [Entry(key="name", at=at, value=from_plain(name, at))]
        entries += [_entry("meta", self.meta, at)] if self.meta else []
        for key, found in self._sections():
            below = (Entry(key=each, at=value.at, value=value) for each, value in found.items())
            node: Node = Entries(at=at, entries=tuple(below))
            entries.append(Entry(key=key, at=at, value=node))
        outputs = Items(at=at, items=(*self.outputs, *self.landing))
        return Entries(at=at, entries=(*entries, Entry(key="outputs", at=at, value=outputs)))

    def _sections(self) -> Iterator[tuple[str, Mapping[str, Entries]]]:
        known = {"sources": self.sources, "topics": self.topics, "relations": self.relations}
        yield from ((key, found) for key, found in known.items() if found)

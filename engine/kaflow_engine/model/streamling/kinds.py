"""The kinds of nodes: what is wrong with their types, before anything else is said of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.model.files.tree import Entries, Entry, Node, brief, text_at
from kaflow_engine.model.streamling.specs import SINKS, SOURCES, TRANSFORMS

KINDS: Mapping[str, tuple[str, ...]] = {
    "sources": SOURCES,
    "transforms": TRANSFORMS,
    "sinks": SINKS,
}
"""By section."""
_ALL = {kind for kinds in KINDS.values() for kind in kinds}


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """A file whose nodes are all of some kind, and what is wrong with those left out."""

    tree: Entries
    mistakes: tuple[ModelError, ...]


def typed(root: Entries) -> Typed:
    """Take out nodes whose type is missing, or meant to be another one."""
    mistakes: list[ModelError] = []
    entries: list[Entry] = []
    for entry in root.entries:
        kinds = KINDS.get(entry.key)
        if kinds is None or not isinstance(entry.value, Entries):
            entries.append(entry)
            continue
        kept: list[Entry] = []
        for node in entry.value.entries:
            wrong = [*_wrong_type(entry.key, node, kinds)]
            mistakes += wrong
            kept += [] if wrong else [node]
        entries.append(replace(entry, value=replace(entry.value, entries=tuple(kept))))
    return Typed(tree=replace(root, entries=tuple(entries)), mistakes=tuple(mistakes))


def _wrong_type(section: str, node: Entry, kinds: tuple[str, ...]) -> Iterator[ModelError]:
    said: Node = node.value
    if not isinstance(said, Entries):
        return  # it is no mapping, which is reported where it is read
    known = f"kinds of {section}: {', '.join(kinds)}, or the id of a plugin"
    kind = text_at(said, "type")
    if kind is None:
        yield ModelError(f"'{brief(node.key)}' has no type", node.at, known)
        return
    if kind in kinds or "." in kind:
        return
    at = next(entry.at for entry in said.entries if entry.key == "type")
    if kind in _ALL:
        yield ModelError(f"'{kind}' is no kind of {section.removesuffix('s')}", at, known)
    elif get_close_matches(kind, kinds, n=1, cutoff=0.7):
        yield UnknownName("type", brief(kind), kinds, at)

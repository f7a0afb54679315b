"""Trees → specifications: every mistake at once, at its line, in our own words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.files.mistakes import translate
from kaflow_engine.model.files.shapes import EACH, Inside, Shape, file_keys, inside_of
from kaflow_engine.model.files.tree import (
    Entries,
    Entry,
    Items,
    Node,
    Plain,
    Scalar,
    brief,
    lay_over,
    to_plain,
    without,
)
from kaflow_engine.model.spec import CHOICE, Path, Spec

S = TypeVar("S", bound=Spec)

_ROUNDS = 5
"""Most times that wrong parts are taken out; the second shows what the first has uncovered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A tree whose keys all exist, each in one spelling, and the mistakes found on the way."""

    tree: Node
    mistakes: tuple[ModelError, ...]


def check_keys(tree: Node, spec: type[Spec], shape: Shape) -> Checked:
    """Take out keys that do not exist, are not available yet, or have no value."""
    mistakes: list[ModelError] = []
    return Checked(
        tree=_checked(tree, Inside(spec=spec), shape, mistakes), mistakes=tuple(mistakes)
    )


def build(
    tree: Node, spec: type[S], shape: Shape, known: Mapping[str, object]
) -> S | tuple[ModelError, ...]:
    """Build a specification from a tree that went through `check_keys`.

    Args:
        tree: What the author wrote.
        spec: What it should be.
        shape: How values are read.
        known: Values of fields that are not keys of the file.

    Returns:
        The specification, or all mistakes.
    """
    built = _validated(tree, spec, shape, known)
    if isinstance(built, spec):
        return built
    assert isinstance(built, list)
    return tuple(mistake for detail in built if (mistake := translate(detail, tree)))


def salvage(
    tree: Node, spec: type[S], shape: Shape, known: Mapping[str, object], needed: Node
) -> S | None:
    """Build a specification from what is right in a tree.

    A list or the columns of a topic are left out as a whole where a part of them is wrong: what
    is concluded from the rest must be true of the whole.

    Args:
        tree: As `build` takes it.
        spec: What it should be.
        shape: How values are read.
        known: Values of fields that are not keys of the file.
        needed: Stands in for what is required and missing or wrong.
    """
    for _ in range(_ROUNDS):
        tree = lay_over(needed, tree)
        built = _validated(tree, spec, shape, known)
        if isinstance(built, spec):
            return built
        assert isinstance(built, list)
        for detail in built:
            tree = without(tree, _whole(detail["loc"]))
    return None


def _validated(
    tree: Node, spec: type[S], shape: Shape, known: Mapping[str, object]
) -> S | list[ErrorDetails]:
    data = _data(tree, (), shape)
    if isinstance(data, dict):
        data = {**data, **known}
    try:
        return spec.model_validate(data)
    except ValidationError as error:
        return [_as_written(detail) for detail in error.errors(include_url=False)]


def _as_written(detail: ErrorDetails) -> ErrorDetails:
    """Take out of a path what the author did not write: which member of a union was meant."""
    path = tuple(s for s in detail["loc"] if not (isinstance(s, str) and s.startswith(CHOICE)))
    return {**detail, "loc": path}


def _whole(path: Path) -> Path:
    """Shorten a path to the list or the columns of which it names a part."""
    for end, step in enumerate(path):
        if isinstance(step, int) or path[end - 1 : end] == ("columns",):
            return path[:end]
    return path


def _checked(node: Node, within: Inside, shape: Shape, mistakes: list[ModelError]) -> Node:
    if isinstance(node, Items) and within.items is not None:
        items = [_checked(item, within.items, shape, mistakes) for item in node.items]
        return Items(at=node.at, items=tuple(items))
    if not isinstance(node, Entries):
        return node
    if within.values is not None:
        below = within.values
        entries = [(entry, _checked(entry.value, below, shape, mistakes)) for entry in node.entries]
        kept = [Entry(key=entry.key, at=entry.at, value=value) for entry, value in entries]
        return Entries(at=node.at, entries=tuple(kept))
    if within.spec is None:
        return node
    kind = node.get("type") if within.kinds is not None else None
    if within.kinds is None or not isinstance(kind, Scalar) or kind.text is None:
        return _checked_spec(node, within.spec, shape, mistakes)
    spec = within.kinds.of(kind.text)
    if spec is None:
        known = [name for name, _ in within.kinds.known]
        mistakes.append(UnknownName("type", brief(kind.text), known, kind.at))
        unsaid = frozenset({"type", *file_keys(within.spec)})  # nothing is missing of no kind
        return Entries(at=node.at, entries=(), misspelled=unsaid)
    return _checked_spec(node, spec, shape, mistakes)


def _checked_spec(
    node: Entries, spec: type[Spec], shape: Shape, mistakes: list[ModelError]
) -> Entries:
    keys = file_keys(spec)
    later = shape.later.get(spec, frozenset())
    seen: dict[str, Entry] = {}
    misspelled: set[str] = set()
    for entry in node.entries:
        if entry.key in later:
            mistakes.append(_unavailable(entry.key, entry.at))
            continue
        if entry.key not in keys:
            unknown = _unknown(entry, spec, shape)
            misspelled |= {unknown.nearest} if unknown.nearest else set()
            mistakes.append(unknown)
            continue
        key, name = keys[entry.key]
        if key in seen:
            first = seen[key].at.line
            mistakes.append(
                ModelError(
                    f"'{entry.key}' is given twice, first in line {first}",
                    entry.at,
                    "remove one of them",
                )
            )
            continue
        field = spec.model_fields[name]
        value = _checked(entry.value, inside_of(field), shape, mistakes)
        if field.is_required() or not _nothing(value):
            seen[key] = Entry(key=key, at=entry.at, value=value)
    return Entries(at=node.at, entries=tuple(seen.values()), misspelled=frozenset(misspelled))


def _unknown(entry: Entry, spec: type[Spec], shape: Shape) -> UnknownName:
    known = _spellings(spec)
    mistake = UnknownName(shape.noun, brief(entry.key), known, entry.at)
    if mistake.hint is None:
        mistake.hint = "known: " + ", ".join(sorted(set(known)))
    return mistake


def _unavailable(key: str, at: Location) -> ModelError:
    return ModelError(f"'{key}' is not available in this version", at, "remove it")


def _spellings(spec: type[Spec]) -> list[str]:
    return [key for key, _ in file_keys(spec).values()]


def _nothing(node: Node) -> bool:
    return isinstance(node, Scalar) and node.text is None and not node.broken


def _fits(path: Path, free: Path) -> bool:
    if len(path) != len(free):
        return False
    return all(own in (step, EACH) for step, own in zip(path, free, strict=True))


def _data(node: Node, path: Path, shape: Shape) -> Plain:
    if any(_fits(path, free) for free in shape.free):
        return to_plain(node)
    match node:
        case Scalar():
            return node.text
        case Items():
            return [_data(item, (*path, index), shape) for index, item in enumerate(node.items)]
        case Entries():
            return {
                entry.key: _data(entry.value, (*path, entry.key), shape) for entry in node.entries
            }

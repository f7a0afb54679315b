"""Processor files → pipelines: the SQL, what the YAML says of it, and the tree of both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.files.reading import build, check_keys, salvage
from kaflow_engine.model.files.tree import (
    Entries,
    Entry,
    Node,
    Scalar,
    find,
    from_plain,
    lay_over,
)
from kaflow_engine.model.files.yaml_file import Document, in_order
from kaflow_engine.model.key_formats import KEY_TYPES, TEXT, KeyFormat, of_value, window_of
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.lowering.program import lower_processor
from kaflow_engine.model.lenses.lowering.sources import Declared
from kaflow_engine.model.lenses.specs import SHAPE, ProcessorSpec, ProcessorTopicSpec, struct_type
from kaflow_engine.model.pipelines.contract import FunctionKindOf
from kaflow_engine.model.pipelines.loader import Reading, read_pipeline
from kaflow_engine.model.sources.nulls import NullChecks

_TAKEN_OVER = ("description", "owners", "group")
_OF_PROCESSORS = ("key_columns", "nullable")
"""What a pipeline file does not say of topics."""
_RENAMED = {"processor_id": "id", "runners": "partitions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _About:
    """What a processor's YAML says."""

    tree: Entries
    """Its keys, all of which exist."""
    spec: ProcessorSpec | None
    mistakes: tuple[ModelError, ...]


def read_processor(
    name: str, sql: SourceText | None, about: Document | None, function_kind: FunctionKindOf
) -> Reading:
    """Read a processor.

    Args:
        name: What it is called where its YAML says nothing.
        sql: Of a file of its own; None: the YAML holds it.
        about: Its YAML, if there is one.
        function_kind: Knows the functions of the project.
    """
    said = _about(about)
    given = said.tree.get("sql") if said else None
    mistakes = [*(said.mistakes if said else ())]
    if sql is not None and given is not None:
        mistakes.append(_two_texts(given.at, sql.at))
    if sql is None and isinstance(given, Scalar):
        sql = _inside(given)
    tree = said.tree if said else None
    start = tree.at if tree is not None else Location(sql.at.file, 1) if sql else Location("")
    if tree is not None and tree.entries:
        start = tree.entries[0].at
    if sql is None:
        wrong = [] if mistakes else [_no_text(start)]
        return Reading(at=start, name=name, mistakes=in_order([*mistakes, *wrong]))
    spec = said.spec if said else None
    lowered = lower_processor(sql, _declared(spec), function_kind)
    mistakes += lowered.mistakes
    if mistakes:
        return Reading(at=start, name=name, mistakes=in_order(mistakes))
    reading = read_pipeline(
        Document(root=_pipeline(name, tree, spec, lowered.keys, start), mistakes=())
    )
    if reading.spec is None:
        return replace(reading, at=start)
    checks = NullChecks(strict=spec.strict_nulls if spec else "on", operands=lowered.operands)
    beside = {"nulls": checks, "suggestions": lowered.suggestions}
    return replace(reading, at=start, spec=reading.spec.model_copy(update=beside))


def _about(document: Document | None) -> _About | None:
    if document is None:
        return None
    root = document.root
    if not isinstance(root, Entries):
        mistake = ModelError("this is not a processor", root.at, "a processor has name: and sql:")
        return _About(tree=Entries(at=root.at, entries=()), spec=None, mistakes=(mistake,))
    checked = check_keys(root, ProcessorSpec, SHAPE)
    built = build(checked.tree, ProcessorSpec, SHAPE, {})
    mistakes = [*document.mistakes, *checked.mistakes]
    spec = built if isinstance(built, ProcessorSpec) else None
    if not isinstance(built, ProcessorSpec):
        mistakes += built
        spec = salvage(checked.tree, ProcessorSpec, SHAPE, {}, from_plain({"name": "_"}, root.at))
    assert isinstance(checked.tree, Entries)
    mistakes += _wrong_nullable(spec, checked.tree)
    mistakes += _keys_without_fields(spec, checked.tree)
    return _About(tree=checked.tree, spec=spec, mistakes=tuple(mistakes))


def _wrong_nullable(spec: ProcessorSpec | None, tree: Entries) -> Iterator[ModelError]:
    for name, topic in spec.topics.items() if spec is not None else ():
        known = topic.columns or {}
        for place, field in enumerate(topic.nullable):
            if field.partition(".")[0].lower() in map(str.lower, known):
                continue
            node = find(tree, ("topics", name, "nullable", place))
            yield UnknownName("column", field, known, node.at if node else tree.at)


def _keys_without_fields(spec: ProcessorSpec | None, tree: Entries) -> Iterator[ModelError]:
    for name, topic in spec.topics.items() if spec is not None else ():
        plain = topic.key_format in ("int", "long", "bytes")
        if topic.key_columns and (plain or window_of(topic.key_format) is not None):
            node = find(tree, ("topics", name, "key_columns"))
            yield ModelError(
                f"keys of '{name}' are {topic.key_format}, and have no fields",
                node.at if node else tree.at,
                "remove key_columns: such a key is one value, _key",
            )


def _inside(text: Scalar) -> SourceText:
    """Return SQL that stands in YAML, with the place of each character in the file."""
    written = text.text or ""
    first = written.partition("\n")[0]
    return SourceText(text=written, at=text.at, indent=_indent(text.at, first))


def _indent(at: Location, first: str) -> int | None:
    """Return how far a text is indented in its file; None where that cannot be seen."""
    try:
        lines = Path(at.file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    line = lines[at.line - 1] if at.line is not None and at.line <= len(lines) else ""
    found = line.find(first) if first.strip() else -1
    return None if found < 0 else found


def _declared(spec: ProcessorSpec | None) -> Mapping[str, Declared]:
    topics = spec.topics if spec is not None else {}
    return {
        name: Declared(
            format=topic.format,
            key=_key_fields(topic),
            key_form=_struct_form(topic),
            whole=next(iter(topic.columns or {"value": ""})) if topic.format == "raw" else None,
            columns=None if topic.columns is None else frozenset(map(str.lower, topic.columns)),
            nullable=frozenset(map(str.lower, topic.nullable)),
        )
        for name, topic in topics.items()
    }


def _key_fields(topic: ProcessorTopicSpec) -> Mapping[str, str] | None:
    """Return the fields of keys, with a window those of that."""
    window = window_of(topic.key_format)
    if window is None:
        return topic.key_columns or None
    kind = KEY_TYPES[of_value(topic.key_format)] or topic.key_type or TEXT
    times = ["window.start", *(["window.end"] if window == "session" else [])]
    return {"value": kind, **dict.fromkeys(times, "BIGINT")}


def _struct_form(topic: ProcessorTopicSpec) -> KeyFormat | None:
    match topic.key_format:
        case "json" | "avro" if topic.key_columns:
            return topic.key_format
        case form:
            return form if window_of(form) is not None else None


def _pipeline(
    name: str, about: Entries | None, spec: ProcessorSpec | None, keys: Entries, start: Location
) -> Entries:
    """Lay what the SQL says over what the YAML says."""
    base = [Entry(key="name", at=start, value=from_plain(name, start))]
    for entry in about.entries if about is not None else ():
        if entry.key == "name":
            base[0] = entry
        elif entry.key in _TAKEN_OVER:
            base.append(entry)
        elif entry.key in _RENAMED:
            base.append(replace(entry, key=_RENAMED[entry.key]))
        elif entry.key == "topics":
            base.append(replace(entry, value=_topics(entry.value, spec)))
    tree = lay_over(Entries(at=start, entries=tuple(base)), keys)
    assert isinstance(tree, Entries)
    return tree


def _topics(topics: Node, spec: ProcessorSpec | None) -> Node:
    """Return what a pipeline file says of topics."""
    if not isinstance(topics, Entries):
        return topics
    return replace(topics, entries=tuple(_plain(topics, spec.topics if spec else {})))


def _plain(topics: Entries, specs: Mapping[str, ProcessorTopicSpec]) -> Iterator[Entry]:
    for entry in topics.entries:
        if not isinstance(entry.value, Entries):
            yield entry
            continue
        kept = [each for each in entry.value.entries if each.key not in _OF_PROCESSORS]
        spec = specs.get(entry.key)
        if spec is not None and spec.key_columns and _struct_form(spec) and spec.key_type is None:
            kind = from_plain(struct_type(spec.key_columns), entry.at)
            kept.append(Entry(key="key_type", at=entry.at, value=kind))
        yield replace(entry, value=replace(entry.value, entries=tuple(kept)))


def _two_texts(given: Location, file: Location) -> ModelError:
    return ModelError(
        f"the SQL of this processor stands here, and in {file.file}",
        given,
        "remove one of them",
    )


def _no_text(at: Location) -> ModelError:
    return ModelError(
        "this processor has no SQL",
        at,
        "write sql: |, or put it beside this file, into <name>.processor.sql",
    )

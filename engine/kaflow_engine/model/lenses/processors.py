"""Processor files → pipelines: the SQL, what the YAML says of it, and the tree of both."""

from dataclasses import dataclass, replace
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.reading import build, check_keys, salvage
from kaflow_engine.model.files.tree import (
    Entries,
    Entry,
    Node,
    Scalar,
    from_plain,
    lay_over,
)
from kaflow_engine.model.files.yaml_file import Document, in_order
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.lowering.program import lower_processor
from kaflow_engine.model.lenses.specs import SHAPE, ProcessorSpec
from kaflow_engine.model.lenses.topics import declared, together, topics_tree, wrong_topics
from kaflow_engine.model.pipelines.contract import NO_TOPICS, FunctionKindOf, SharedTopics
from kaflow_engine.model.pipelines.loader import Reading, read_pipeline
from kaflow_engine.model.sources.nulls import NullChecks
from kaflow_engine.model.sources.schema_first import SchemaFirst

_TAKEN_OVER = ("description", "owners", "group")
_SCHEMAS = (
    "declare topics.{topic}.columns in the processor's YAML or in kaflow.yaml, or topics.{topic}."
    "format where the schema is registered: no sample is taken of records"
)
_RENAMED = {"processor_id": "id", "application_id": "consumer_group", "runners": "partitions"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _About:
    """What a processor's YAML says."""

    tree: Entries
    """Its keys, all of which exist."""
    spec: ProcessorSpec | None
    mistakes: tuple[ModelError, ...]


def read_processor(
    name: str,
    sql: SourceText | None,
    about: Document | None,
    function_kind: FunctionKindOf,
    shared: SharedTopics = NO_TOPICS,
) -> Reading:
    """Read a processor.

    Args:
        name: What it is called where its YAML says nothing.
        sql: Of a file of its own; None: the YAML holds it.
        about: Its YAML, if there is one.
        function_kind: Knows the functions of the project.
        shared: What the configuration says of topics.
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
    topics = together(spec.topics if spec else {}, shared.specs)
    lowered = lower_processor(sql, declared(topics), function_kind)
    read = {name: shared.specs[name] for name in lowered.reads if name in shared.specs}
    mistakes += [*lowered.mistakes, *wrong_topics(read, shared.tree)]
    if mistakes:
        return Reading(at=start, name=name, mistakes=in_order(mistakes))
    said_of_topics = topics_tree(
        tree.get("topics") if tree is not None else None, topics, shared.tree, lowered.reads
    )
    reading = read_pipeline(
        Document(root=_pipeline(name, tree, said_of_topics, lowered.keys, start), mistakes=())
    )
    if reading.spec is None:
        return replace(reading, at=start)
    checks = NullChecks(strict=spec.strict_nulls if spec else "on", operands=lowered.operands)
    beside = {
        "nulls": checks,
        "suggestions": lowered.suggestions,
        "schema_first": SchemaFirst(topics=lowered.reads, way_out=_SCHEMAS),
    }
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
    if spec is not None:
        mistakes += wrong_topics(spec.topics, checked.tree)
    return _About(tree=checked.tree, spec=spec, mistakes=tuple(mistakes))


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


def _pipeline(
    name: str, about: Entries | None, topics: Node, keys: Entries, start: Location
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
    if topics != Entries(at=topics.at, entries=()):
        base.append(Entry(key="topics", at=topics.at, value=topics))
    tree = lay_over(Entries(at=start, entries=tuple(base)), keys)
    assert isinstance(tree, Entries)
    return tree


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

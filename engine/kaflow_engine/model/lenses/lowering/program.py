"""A processor → the tree that a pipeline file would have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from kaflow_engine.errors import ModelError, SqlError
from kaflow_engine.model.brought.suggestions import Suggestion
from kaflow_engine.model.files.tree import Entries
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.statements import parse
from kaflow_engine.model.lenses.grammar.syntax import (
    Insert,
    Name,
    Query,
    Setting,
    Statement,
    With,
)
from kaflow_engine.model.lenses.lowering.formats import key_format, value_format
from kaflow_engine.model.lenses.lowering.joins import joined_together
from kaflow_engine.model.lenses.lowering.output_topics import (
    topic_entries,
    topics_that_are_not_written,
)
from kaflow_engine.model.lenses.lowering.queries import NEW_KEY, LoweredQuery, lower_query
from kaflow_engine.model.lenses.lowering.reads import first_reads
from kaflow_engine.model.lenses.lowering.settings import Settings, read_settings
from kaflow_engine.model.lenses.lowering.sources import (
    Declared,
    Reading,
    Sources,
    Ways,
    event_time_of,
)
from kaflow_engine.model.lenses.lowering.suggestions import suggestions
from kaflow_engine.model.lenses.lowering.tree import Part, entry, pipeline_tree
from kaflow_engine.model.lenses.lowering.writer import quoted
from kaflow_engine.model.pipelines.contract import FunctionKindOf, no_function
from kaflow_engine.model.sources.nulls import Operand
from kaflow_engine.model.sources.schema_first import FirstRead


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredProcessor:
    """What the SQL of a processor says, as keys of a pipeline file; and what is wrong with it."""

    keys: Entries
    mistakes: tuple[ModelError, ...]
    operands: tuple[Operand, ...] = ()
    """Which may be NULL, and must not."""
    suggestions: tuple[Suggestion, ...] = ()
    """What could be said better."""
    reads: Mapping[str, FirstRead] = field(default_factory=dict[str, FirstRead])
    """The topics that it reads."""


@dataclass(slots=True, kw_only=True)
class _Parts:
    parts: list[Part] = field(default_factory=list[Part])
    operands: list[Operand] = field(default_factory=list[Operand])


def lower_processor(
    source: SourceText,
    declared: Mapping[str, Declared],
    function_kind: FunctionKindOf = no_function,
) -> LoweredProcessor:
    """Lower the SQL of a processor.

    Args:
        source: Its text.
        declared: What its file says of topics.
        function_kind: Knows the functions of the project.
    """
    try:
        statements = parse(source)
    except ModelError as mistake:
        return LoweredProcessor(keys=Entries(at=source.at, entries=()), mistakes=(mistake,))
    settings, mistakes = read_settings([s for s in statements if isinstance(s, Setting)], source)
    wrong = [*mistakes, *_statements_that_collide(statements, source)]
    withs = [each for each in statements if isinstance(each, With)]
    sources = Sources(
        source=source,
        declared=declared,
        function_kind=function_kind,
        later={each.name.text for each in withs},
        ways=_ways(statements),
        joined=joined_together(statements),
    )
    parts = _Parts()
    for statement in statements:
        try:
            match statement:
                case With():
                    _with(statement, sources, parts)
                case Insert():
                    _insert(statement, sources, settings, parts)
                case Setting():
                    pass
        except ModelError as mistake:
            wrong.append(mistake)
            if isinstance(statement, With):
                break  # what reads it would be wrong for no reason of its own
    wrong += _read_and_written(statements, sources)
    written = [each.target.text for each in statements if isinstance(each, Insert)]
    wrong += topics_that_are_not_written(settings, written) if written else ()
    tree, apart = pipeline_tree(parts.parts, sources, settings, source.at)
    return LoweredProcessor(
        keys=tree,
        mistakes=(*wrong, *apart),
        operands=tuple(parts.operands),
        suggestions=suggestions(statements, settings, source),
        reads=first_reads(statements, source),
    )


def _read_and_written(statements: tuple[Statement, ...], sources: Sources) -> Iterator[ModelError]:
    for each in statements:
        if isinstance(each, Insert) and each.target.text in sources.roles:
            yield SqlError(
                f"this processor reads and writes topic '{each.target.text}'",
                sources.source.place(each.target.offset),
                "write to another topic, or name the SELECT with WITH",
            )


def _ways(statements: tuple[Statement, ...]) -> dict[str, Ways]:
    """Return how each topic is read."""
    withs = {each.name.text for each in statements if isinstance(each, With)}
    found: dict[str, Ways] = {}
    for statement in statements:
        if isinstance(statement, Setting):
            continue
        query = statement.query
        for source in (query.source, *(join.source for join in query.joins)):
            name = source.name.text
            if name not in withs:
                ways = found.get(name, Ways())
                found[name] = ways.also(query.kind, event_time_of(query, source))
    return found


def _with(statement: With, sources: Sources, parts: _Parts) -> None:
    lowered = lower_query(statement.query, sources, writes=False)
    parts.operands += lowered.operands
    lowered = _rekeyed(statement.name, statement.query, lowered, sources, parts)
    name = statement.name.text
    sources.later.discard(name)
    sources.relations[name] = lowered.relation
    at = sources.source.place(statement.name.offset)
    start = sources.source.place(statement.query.offset)
    parts.parts.append(Part(name=name, at=at, start=start, query=lowered))


def _rekeyed(
    name: Name, query: Query, lowered: LoweredQuery, sources: Sources, parts: _Parts
) -> LoweredQuery:
    """Return a TABLE that gets another key as it is read by that; others as they are."""
    if not lowered.rekeyed:
        return lowered
    at, start = sources.source.place(name.offset), sources.source.place(query.offset)
    rows, by_key = f"{name.text} rows", f"{name.text} by key"
    parts.parts.append(Part(name=rows, at=at, start=start, query=lowered))
    sources.readings[by_key] = Reading(of=rows, topic=False, at=at, key=NEW_KEY)
    sql = f"SELECT * EXCLUDE ({quoted(NEW_KEY)}) FROM {quoted(by_key)}"
    return replace(lowered, sql=sql, joined=None)


def _insert(statement: Insert, sources: Sources, settings: Settings, parts: _Parts) -> None:
    stored = statement.key.name if statement.key is not None else None
    lowered = lower_query(statement.query, sources, writes=True, stored=stored)
    parts.operands += lowered.operands
    lowered = _rekeyed(statement.target, statement.query, lowered, sources, parts)
    at = sources.source.place(statement.target.offset)
    start = sources.source.place(statement.query.offset)
    of_keys = key_format(statement, lowered.relation, sources.source)
    form = value_format(statement, lowered.relation, sources.source)
    topic = statement.target.text
    entries = [entry("topic", topic, at), entry("format", form, at)]
    if of_keys is not None:
        place = sources.source.place((statement.key or statement.target).offset)
        entries.append(entry("key_format", of_keys, place))
    query: LoweredQuery | None = lowered
    if lowered.grace is not None:
        name = topic if topic not in sources.relations else f"{topic} windows"
        parts.parts.append(Part(name=name, at=at, start=start, query=lowered))
        entries.insert(0, entry("from", name, start))
        query = None
    entries += topic_entries(settings, topic, form, of_keys, at)
    parts.parts.append(Part(name=None, at=at, start=start, query=query, entries=tuple(entries)))


def _statements_that_collide(
    statements: tuple[Statement, ...], source: SourceText
) -> Iterator[ModelError]:
    first: dict[tuple[str, str], int] = {}
    inserts = 0
    for statement in statements:
        match statement:
            case With(name=name):
                key, text = ("WITH", name.text.lower()), f"two WITHs are called '{name.text}'"
            case Insert(target=name):
                inserts += 1
                key, text = ("INSERT", name.text), f"two INSERT INTO write topic '{name.text}'"
            case Setting():
                continue
        other = first.setdefault(key, name.offset)
        if other != name.offset:
            yield SqlError(
                f"{text}, the other one at {source.place(other)}",
                source.place(name.offset),
                "give one of them another name"
                if key[0] == "WITH"
                else "write to another topic, or put the conditions into one SELECT",
            )
    if not inserts:
        yield SqlError(
            "this processor writes to no topic",
            source.place(0),
            "write INSERT INTO <topic> SELECT STREAM … FROM <topic>;",
        )

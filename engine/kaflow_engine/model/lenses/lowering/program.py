"""A processor → the tree that a pipeline file would have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.files.tree import Entries, Entry, Items, Node, from_plain
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.statements import parse
from kaflow_engine.model.lenses.grammar.syntax import Insert, Setting, Statement, With
from kaflow_engine.model.lenses.lowering.formats import key_format, value_format
from kaflow_engine.model.lenses.lowering.queries import LoweredQuery, lower_query
from kaflow_engine.model.lenses.lowering.settings import Settings, read_settings
from kaflow_engine.model.lenses.lowering.sources import (
    Declared,
    Reading,
    Sources,
    Ways,
    event_time_of,
)
from kaflow_engine.model.pipelines.contract import FunctionKindOf, no_function
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.model.sources.nulls import Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredProcessor:
    """What the SQL of a processor says, as keys of a pipeline file; and what is wrong with it."""

    keys: Entries
    mistakes: tuple[ModelError, ...]
    operands: tuple[Operand, ...] = ()
    """Which may be NULL, and must not."""


@dataclass(slots=True, kw_only=True)
class _Parts:
    relations: list[Entry] = field(default_factory=list[Entry])
    outputs: list[Node] = field(default_factory=list[Node])
    operands: list[Operand] = field(default_factory=list[Operand])
    windows: bool = False


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
    if sources.matches is not None and parts.windows:
        wrong.append(
            SqlError(
                "events wait for matches here, and a window stands in the same processor",
                sources.matches.at,
                "write the joined rows to a topic, and group them in another processor; or write "
                "JOIN without LEFT, RIGHT, OUTER and GRACE BY",
            )
        )
    tree = _tree(parts, sources, settings, source.at)
    return LoweredProcessor(keys=tree, mistakes=tuple(wrong), operands=tuple(parts.operands))


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
    name = statement.name.text
    sources.later.discard(name)
    sources.relations[name] = lowered.relation
    at = sources.source.place(statement.name.offset)
    start = sources.source.place(statement.query.offset)
    parts.windows |= lowered.grace is not None
    parts.relations.append(_relation(name, lowered, at, start))


def _insert(statement: Insert, sources: Sources, settings: Settings, parts: _Parts) -> None:
    lowered = lower_query(statement.query, sources, writes=True)
    parts.operands += lowered.operands
    at = sources.source.place(statement.target.offset)
    start = sources.source.place(statement.query.offset)
    of_keys = key_format(statement, lowered.relation, sources.source)
    form = value_format(statement, lowered.relation, sources.source)
    topic = statement.target.text
    entries = [_entry("topic", topic, at), _entry("format", form, at)]
    if of_keys is not None and statement.key is not None:
        place = sources.source.place(statement.key.offset)
        entries.append(_entry("key_format", of_keys, place))
    if lowered.grace is None:
        entries.insert(0, _entry("query", lowered.sql, start))
    else:
        parts.windows = True
        name = topic if topic not in sources.relations else f"{topic} windows"
        parts.relations.append(_relation(name, lowered, at, start))
        entries.insert(0, _entry("from", name, start))
    schema = settings.schema_name(topic)
    if form == "avro" and schema is not None:
        entries.append(_entry("schema", {"name": schema}, at))
    parts.outputs.append(Entries(at=at, entries=tuple(entries)))


def _relation(name: str, lowered: LoweredQuery, at: Location, start: Location) -> Entry:
    entries = [_entry("query", lowered.sql, start)]
    if lowered.grace is not None:
        entries.append(_entry("aggregation", {"grace": format_duration(lowered.grace)}, start))
    return Entry(key=name, at=at, value=Entries(at=at, entries=tuple(entries)))


def _tree(parts: _Parts, sources: Sources, settings: Settings, start: Location) -> Entries:
    entries: list[Entry] = []
    readings = (_reading(name, reading) for name, reading in sources.readings.items())
    named = (*parts.relations, *readings)
    if named:
        relations = Entries(at=start, entries=named)
        entries.append(Entry(key="relations", at=start, value=relations))
    entries.append(
        Entry(key="outputs", at=start, value=Items(at=start, items=tuple(parts.outputs)))
    )
    topics = tuple(_topics(sources, settings))
    if topics:
        entries.append(Entry(key="topics", at=start, value=Entries(at=start, entries=topics)))
    kept = {
        name: _entry(name, format_duration(role.ttl), role.at)
        for name, role in sources.roles.items()
        if role.ttl is not None
    }
    if kept:
        overrides = Entries(at=start, entries=tuple(kept.values()))
        events = Entries(at=start, entries=(Entry(key="overrides", at=start, value=overrides),))
        state = Entries(at=start, entries=(Entry(key="events", at=start, value=events),))
        entries.append(Entry(key="state", at=start, value=state))
    if sources.matches is not None:
        entries.append(_entry("emission", {"type": "on_match"}, start))
        entries.append(_entry("within", {"grace": format_duration(sources.matches.grace)}, start))
        entries.append(_entry("row_time", "latest", start))
    elif parts.windows:
        entries.append(_entry("emission", {"type": "immediate"}, start))
    if settings.delivery is not None:
        entries.append(_entry("delivery", settings.delivery, start))
    if settings.dead_letters is not None:
        entries.append(_entry("dead_letters", {"topic": settings.dead_letters}, start))
    return Entries(at=start, entries=tuple(entries))


def _reading(name: str, reading: Reading) -> Entry:
    if reading.topic:
        said: dict[str, object] = {"topic": reading.of}
        said |= {"table": True} if reading.table else {}
        said |= {"event_time": reading.event_time} if reading.event_time else {}
        return _entry(name, said, reading.at)
    way = {"as": "table", "key": [KEY]} if reading.table else {"as": "append"}
    return _entry(name, {"from": reading.of, **way}, reading.at)


def _topics(sources: Sources, settings: Settings) -> Iterator[Entry]:
    for name, role in sources.roles.items():
        said: dict[str, object] = {}
        if role.kind == "TABLE":
            said["table"] = True
        if role.event_time is not None:
            said["event_time"] = role.event_time
        if settings.on_error is not None:
            said["on_error"] = settings.on_error
        if said:
            yield _entry(name, said, role.at)


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


def _entry(key: str, value: object, at: Location) -> Entry:
    return Entry(key=key, at=at, value=from_plain(value, at))

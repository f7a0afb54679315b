"""What the SELECTs of a processor were lowered to → the tree of a pipeline file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.files.tree import Entries, Entry, Items, from_plain
from kaflow_engine.model.lenses.lowering.joins import Joined
from kaflow_engine.model.lenses.lowering.queries import LoweredQuery
from kaflow_engine.model.lenses.lowering.settings import Settings
from kaflow_engine.model.lenses.lowering.sources import Reading, Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A relation, or an output: what a SELECT becomes."""

    name: str | None
    """Of a relation; None: it is an output."""
    at: Location
    start: Location
    """Where its SELECT begins."""
    query: LoweredQuery | None
    """None: it writes the rows of the relation before it."""
    entries: tuple[Entry, ...] = ()
    """What else is said of it."""

    @property
    def lines(self) -> range:
        """The lines of its query."""
        first = self.start.line or 0
        return range(first, first + self.query.sql.count("\n") + 1 if self.query else first)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """What counts for SELECTs that say nothing else themselves."""

    ttls: Mapping[str, int]
    """How long events are kept for joins, in ms."""
    waiting: Joined | None
    """How the joins of all of them wait; None: not alike."""
    windows: bool


def pipeline_tree(
    parts: Sequence[Part], sources: Sources, settings: Settings, start: Location
) -> tuple[Entries, tuple[ModelError, ...]]:
    """Return the keys that a pipeline file would have, and what of the parts cannot stand together.

    Args:
        parts: Of the processor, in its order.
        sources: What they read.
        settings: What the processor sets.
        start: Where the processor begins.
    """
    common = _common(parts)
    own = [_own_entries(part, common) for part in parts]
    made = [
        Entries(at=part.at, entries=(*_query_entries(part), *part.entries, *said))
        for part, said in zip(parts, own, strict=True)
    ]
    readings = (_reading(name, reading) for name, reading in sources.readings.items())
    relations = (
        *(
            Entry(key=part.name, at=part.at, value=value)
            for part, value in zip(parts, made, strict=True)
            if part.name is not None
        ),
        *readings,
    )
    outputs = tuple(v for part, v in zip(parts, made, strict=True) if part.name is None)
    topics = tuple(_topics(sources, settings))
    entries = [
        Entry(key="relations", at=start, value=Entries(at=start, entries=relations)),
        Entry(key="outputs", at=start, value=Items(at=start, items=outputs)),
        Entry(key="topics", at=start, value=Entries(at=start, entries=topics)),
    ]
    kept = [entry(t, format_duration(ttl), sources.roles[t].at) for t, ttl in common.ttls.items()]
    if kept:
        entries.append(_state(kept, start))
    if common.waiting is not None:
        entries += _waiting(common.waiting, start)
    elif common.windows:
        entries.append(entry("emission", {"type": "immediate"}, start))
    if settings.delivery is not None:
        entries.append(entry("delivery", settings.delivery, start))
    if settings.begin is not None:
        entries.append(entry("auto_offset_reset", settings.begin, start))
    if settings.dead_letters is not None:
        entries.append(entry("dead_letters", {"topic": settings.dead_letters}, start))
    shown = tuple(each for each in entries if each.value != Entries(at=start, entries=()))
    return Entries(at=start, entries=shown), tuple(_shared_lines(parts, own))


def entry(key: str, value: object, at: Location) -> Entry:
    """Return a key with a plain value, both of one place."""
    return Entry(key=key, at=at, value=from_plain(value, at))


def _common(parts: Sequence[Part]) -> _Common:
    """Return what counts where a SELECT says nothing else: of the events of a topic what the first
    join says, and that they wait, where all do."""
    ttls: dict[str, int] = {}
    waiting: list[Joined] = []
    windows = any(part.query is not None and part.query.grace is not None for part in parts)
    for joined in _joined(parts):
        ttls = {**joined.ttls, **ttls}
        waiting += [joined] if joined.kept else []
    alike = all(each.waits_as(waiting[0]) and each.ttls.items() <= ttls.items() for each in waiting)
    said = waiting[0] if waiting and alike and not windows else None
    return _Common(ttls=ttls, waiting=said if said and said.matches else None, windows=windows)


def _joined(parts: Sequence[Part]) -> Iterator[Joined]:
    seen: set[int] = set()
    for part in parts:
        joined = part.query.joined if part.query is not None else None
        if joined is not None and id(joined) not in seen:
            seen.add(id(joined))
            yield joined


def _query_entries(part: Part) -> tuple[Entry, ...]:
    return () if part.query is None else (entry("query", part.query.sql, part.start),)


def _own_entries(part: Part, common: _Common) -> tuple[Entry, ...]:
    """Return what a SELECT says itself of when its rows leave, and how long what they are made of
    is kept."""
    found: list[Entry] = []
    if part.query is None:
        return ()
    if part.query.grace is not None:
        grace = {"grace": format_duration(part.query.grace)}
        found.append(entry("aggregation", grace, part.start))
    joined = part.query.joined
    if joined is None:
        return tuple(found)
    others = {topic: ttl for topic, ttl in joined.ttls.items() if common.ttls[topic] != ttl}
    if others:
        kept = [entry(t, format_duration(ttl), part.start) for t, ttl in others.items()]
        found.append(_state(kept, part.start))
    if joined.matches is not None and common.waiting is None:
        windows = part.query.grace is not None
        found += _waiting(joined, part.start, windows=windows)
    return tuple(found)


def _state(kept: Sequence[Entry], at: Location) -> Entry:
    overrides = Entries(at=at, entries=tuple(kept))
    events = Entries(at=at, entries=(Entry(key="overrides", at=at, value=overrides),))
    state = Entries(at=at, entries=(Entry(key="events", at=at, value=events),))
    return Entry(key="state", at=at, value=state)


def _waiting(joined: Joined, at: Location, *, windows: bool = False) -> list[Entry]:
    """Return what is said of joins whose events wait for matches."""
    emission = {"type": "on_match", **({"windows": "immediate"} if windows else {})}
    within: dict[str, object] = {"grace": format_duration(joined.grace)}
    if joined.within:
        within["joins"] = {name: format_duration(of) for name, of in joined.within.items()}
    return [
        entry("emission", emission, at),
        entry("within", within, at),
        entry("row_time", "latest", at),
    ]


def _shared_lines(parts: Sequence[Part], own: Sequence[tuple[Entry, ...]]) -> Iterator[ModelError]:
    """Yield SELECTs that say something themselves, and could be taken for others of their line."""
    for part, said in zip(parts, own, strict=True):
        others = (each for each in parts if each is not part)
        if said and any(set(part.lines) & set(each.lines) for each in others):
            yield SqlError(
                "another SELECT stands on this line, and not both leave their rows alike",
                part.start,
                "begin each WITH and INSERT INTO on a line of its own",
            )


def _reading(name: str, reading: Reading) -> Entry:
    if reading.topic:
        said: dict[str, object] = {"topic": reading.of}
        said |= {"table": True} if reading.table else {}
        said |= {"event_time": reading.event_time} if reading.event_time else {}
        return entry(name, said, reading.at)
    way = {"as": "table", "key": [reading.key]} if reading.table else {"as": "append"}
    return entry(name, {"from": reading.of, **way}, reading.at)


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
            yield entry(name, said, role.at)

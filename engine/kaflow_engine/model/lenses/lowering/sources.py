"""What the sources of SELECTs are: topics in their roles, and the WITHs before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.model.key_formats import KeyFormat
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import Field, Kind, Name, Query, Source
from kaflow_engine.model.lenses.lowering.joins import Joined
from kaflow_engine.model.lenses.lowering.nulls.causes import Rows, TopicRows
from kaflow_engine.model.lenses.lowering.scope import FACETS, Input, Shape
from kaflow_engine.model.pipelines.contract import FunctionKindOf
from kaflow_engine.model.record_columns import KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the processor's file says of a topic."""

    format: str | None = None
    key: Mapping[str, str] | None = None
    """Fields of its key."""
    key_form: KeyFormat | None = None
    """The format of keys that are read as structures."""
    whole: str | None = None
    """The one column of a value that is a text or bytes."""
    columns: frozenset[str] | None = None
    """In lower case; None: it does not say them."""
    nullable: frozenset[str] = frozenset()
    """Those of them that can be NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A WITH that was lowered, or a topic."""

    shape: Shape
    events: frozenset[str]
    """Topics whose events make its rows; none of a table."""
    format: str | None
    """Of the values it is made of."""
    rows: Rows
    """Which of its columns can be NULL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A topic or a WITH that is read in another way than elsewhere: as a table, as the changes of
    one, or by another event time."""

    of: str
    topic: bool
    at: Location
    table: bool = True
    event_time: str | None = None
    key: str = KEY
    """Of a WITH that is read as a table: the column that is its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """How the SELECTs of a processor read a topic."""

    kinds: frozenset[Kind] = frozenset()
    event_times: frozenset[str | None] = frozenset()
    """What EVENTTIME BY names; None: a SELECT without it."""

    def also(self, kind: Kind, event_time: str | None) -> "Ways":
        """Return these and one more."""
        return Ways(
            kinds=frozenset((*self.kinds, kind)),
            event_times=frozenset((*self.event_times, event_time)),
        )

    @property
    def event_time(self) -> str | None:
        """The event time of the topic, where all SELECTs have the same."""
        return next(iter(self.event_times)) if len(self.event_times) == 1 else None


@dataclass(slots=True, kw_only=True)
class Role:
    """How a processor reads a topic."""

    kind: Kind
    at: Location
    event_time: str | None = None


@dataclass(slots=True, kw_only=True)
class Sources:
    """Topics that are read, and WITHs that can be."""

    source: SourceText
    declared: Mapping[str, Declared]
    later: set[str]
    """WITHs that stand further down."""
    function_kind: FunctionKindOf
    ways: Mapping[str, Ways]
    """Of topics."""
    joined: Mapping[int, Joined]
    """How SELECTs with joins are joined, by their offsets."""
    relations: dict[str, Relation] = field(default_factory=dict[str, Relation])
    roles: dict[str, Role] = field(default_factory=dict[str, Role])
    readings: dict[str, Reading] = field(default_factory=dict[str, Reading])
    """By name."""

    def inputs(self, query: Query) -> tuple[Input, ...]:
        """Return the sources of a SELECT.

        Raises:
            SqlError: A name means nothing, or a topic has two roles.
        """
        joined = bool(query.joins)
        sources = (query.source, *(join.source for join in query.joins))
        found: list[Input] = []
        for source in sources:
            time = event_time_of(query, source)
            relation, name = self._relation(source.name, query.kind, time, joined=joined)
            called = (source.alias or source.name).text
            if any(called == other.called for other in found):
                raise self._wrong(
                    source.alias or source.name,
                    f"two sources are called '{called}'",
                    "give them names of their own: FROM a AS x",
                )
            found.append(
                Input(called=called, name=source.name, relation=name, shape=relation.shape)
            )
        return tuple(found)

    def relation(self, of: Input) -> Relation:
        """Return what a source of a SELECT reads."""
        known = self.relations.get(of.name.text)
        if known is not None and known.shape.kind == of.shape.kind:
            return known
        return self._as(of.shape.kind, known) if known else self._topic(of.name.text, of.shape.kind)

    def _relation(
        self, name: Name, kind: Kind, event_time: str | None, *, joined: bool
    ) -> tuple[Relation, str]:
        """Return what a name means, and what it is called in DuckDB's SQL."""
        if name.text in self.later:
            raise self._wrong(
                name, f"WITH {name.text} stands further down", "move it before this SELECT"
            )
        known = self.relations.get(name.text)
        if known is not None and (joined or known.shape.kind == kind):
            return known, name.text
        if known is not None:
            at, table = self.source.place(name.offset), kind == "TABLE"
            reading = Reading(of=name.text, topic=False, at=at, table=table)
            return self._as(kind, known), self._read_as(reading)
        return self._topic(name.text, kind), self._read(name, kind, event_time)

    def _read(self, name: Name, kind: Kind, event_time: str | None) -> str:
        """Return what a topic is called as it is read: by its own name in one way, the others are
        readings."""
        ways, at = self.ways[name.text], self.source.place(name.offset)
        twice = len(ways.kinds) > 1
        role = Role(kind="STREAM" if twice else kind, at=at, event_time=ways.event_time)
        self.roles.setdefault(name.text, role)
        reading = Reading(
            of=name.text,
            topic=True,
            at=at,
            table=kind == "TABLE",
            event_time=None if event_time == role.event_time else event_time,
        )
        as_topic = kind == role.kind and reading.event_time is None
        return name.text if as_topic else self._read_as(reading)

    def _read_as(self, reading: Reading) -> str:
        called = f"{reading.of}_table" if reading.table else reading.of
        called = called if reading.table or reading.topic else f"{reading.of}_changes"
        called = f"{called}_by_{reading.event_time}" if reading.event_time else called
        while called in self.relations or called in self.roles or called in self.later:
            called += "_"
        self.readings.setdefault(called, reading)
        return called

    def _as(self, kind: Kind, relation: Relation) -> Relation:
        shape = replace(relation.shape, kind=kind, grouped=False)
        return replace(relation, shape=shape, events=frozenset())

    def _topic(self, name: str, kind: Kind) -> Relation:
        declared = self.declared.get(name, Declared())
        return Relation(
            shape=Shape(
                kind=kind, key=declared.key, key_form=declared.key_form, whole=declared.whole
            ),
            events=frozenset({name} if kind == "STREAM" else ()),
            format=declared.format,
            rows=TopicRows(topic=name, columns=declared.columns, nullable=declared.nullable),
        )

    def check_event_time(self, query: Query, inputs: tuple[Input, ...]) -> None:
        """Check what EVENTTIME BY names.

        Raises:
            SqlError: It is no column of a topic's value.
        """
        said = query.event_time
        if said is None:
            return
        owner, path = _owner(said, [each.called for each in inputs])
        of = next(each for each in inputs if each.called == owner)
        if of.name.text in self.relations:
            raise self._wrong(
                of.name,
                f"EVENTTIME BY of '{of.called}', which is no topic",
                "write EVENTTIME BY in the WITH that reads the topic",
            )
        if path and path[0].text == "_key":
            self._check_key_time(path, of)
        elif len(path) != 1 or path[0].text in FACETS:
            raise self._wrong(
                said.parts[0],
                "EVENTTIME BY needs one field of the value, or one of the key",
                "write EVENTTIME BY <field>, of type LONG, in ms, or TIMESTAMP",
            )

    def _check_key_time(self, path: Sequence[Name], of: Input) -> None:
        name = ".".join(part.text for part in path[1:])
        if not name or name in (of.shape.key or ()):
            return
        known = ", ".join(of.shape.key or ())
        raise self._wrong(
            path[1],
            f"the key of '{of.name.text}' has no field '{name}'",
            f"it has: {known}"
            if known
            else f"declare topics: {of.name.text}: key_columns: {{{name}: BIGINT}} in the "
            "processor's YAML",
        )

    def _wrong(self, name: Name, message: str, hint: str) -> SqlError:
        return SqlError(message, self.source.place(name.offset), hint)


def event_time_of(query: Query, source: Source) -> str | None:
    """Return what EVENTTIME BY of a SELECT names of one of its sources; None: nothing."""
    said = query.event_time
    if said is None:
        return None
    sources = [query.source, *(join.source for join in query.joins)]
    names = [_called(each) for each in sources]
    owner, path = _owner(said, names)
    if not path or owner != _called(source):
        return None
    return ".".join(part.text for part in path) if path[0].text == "_key" else path[0].text


def _called(source: Source) -> str:
    return (source.alias or source.name).text


def _owner(said: Field, names: Sequence[str]) -> tuple[str, tuple[Name, ...]]:
    """Return what the source of a field is called, the first one where it says none, and its path
    there."""
    parts = said.parts
    of = parts[0].text if parts[0].text in names else None
    if of is not None:
        parts = parts[1:]
    if parts and parts[0].text == "_value":
        parts = parts[1:]
    return of or names[0], parts

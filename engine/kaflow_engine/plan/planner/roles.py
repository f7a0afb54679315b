"""What topics are to a pipeline, and by which event times they are read."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kaflow_engine.flow.sources import CLOCK
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.mistakes import dotted
from kaflow_engine.model.pipelines.own_settings import as_said_by, owners, settings_at
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.chain_shapes import ChainShape, is_timed
from kaflow_engine.sql.shape import SourceShape

Way = tuple[str, str | None]
"""A topic, and the reading under whose name a query reads it; None: under its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """What the records of a topic are to queries."""

    dimension: bool
    """Looked up as one of `state.dimensions`."""
    table: bool
    """Read as a table; it may have other roles besides."""
    side: bool
    """Joined as an event side."""
    driving: bool
    """Its records make rows."""
    rows_of_tables: bool
    """Its records make rows of a table that a query is about."""
    timed: bool
    """It is a table whose changes have an event time that matters."""

    @property
    def events(self) -> bool:
        """Whether its records are events: they drive, or are joined as such."""
        return self.side or (self.driving and not self.dimension)

    @property
    def rank(self) -> int:
        """0 dimension or table, 1 event side, 2 driving: the first of its roles."""
        return 0 if self.dimension or self.table else 1 if self.side else 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockRole(Ways):
    """What a topic is to the queries that read it by one event time."""

    name: str
    """The name of the topic, or `<topic>@<column>`."""
    column: str | None
    """None: the Kafka timestamp."""
    readings: tuple[str | None, ...]
    """The readings that have it; None: the topic under its own name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRole(Ways):
    """What a topic is to a pipeline."""

    name: str
    ttl: int
    """Milliseconds that its events are kept; not used for a dimension's values."""
    ttl_from: str
    """The setting that the TTL comes from."""
    clocks: tuple[ClockRole, ...]
    """By each event time; first the one that is said of the topic itself."""
    ttls: Mapping[Path, tuple[int, str]] = field(default_factory=dict[Path, tuple[int, str]])
    """TTL and where it comes from, by who says something of it for a query."""

    def said_by(self, owner: Path) -> "TopicRole":
        """Return what the topic is where joins count as a relation or an output says."""
        if owner not in self.ttls:
            return self
        ttl, ttl_from = self.ttls[owner]
        return replace(self, ttl=ttl, ttl_from=ttl_from)

    def clock(self, source: SourceShape) -> str:
        """Return the name of the clock by which a query reads the topic."""
        return next(each.name for each in self.clocks if source.reading in each.readings)


def topic_ttl(spec: PipelineSpec, config: Config, topic: str) -> tuple[int, str]:
    """Return the TTL of an event topic in milliseconds, and the setting it comes from."""
    events = spec.state.events
    if topic in events.overrides:
        return events.overrides[topic], f"state.events.overrides.{topic}"
    if events.default_ttl is not None:
        return events.default_ttl, "state.events.default_ttl"
    if spec.window is not None:
        return spec.window, "window"
    return config.state.ttl, "state.ttl of the configuration"


def topic_roles(
    spec: PipelineSpec,
    config: Config,
    chains: Sequence[Sequence[SourceShape]],
    timed: Collection[Way],
    rows: Collection[Way],
) -> tuple[TopicRole, ...]:
    """Return the roles of the topics of a pipeline, ordered by code point.

    Args:
        spec: What the author wrote.
        config: For the default TTL.
        chains: Of each the topics as its query reads them; the first drives.
        timed: Tables whose changes are grouped as rows of their own.
        rows: Tables whose rows a query is about.
    """
    roles: list[TopicRole] = []
    every = {way_of(source) for sources in chains for source in sources}
    found, said = _Found.of(chains, timed, rows), owners(spec, "state")
    for name in sorted({topic for topic, _ in every}):
        ways = {way for way in every if way[0] == name}
        dimension = name in spec.state.dimensions
        kept = "" if dimension and ways & found.driving else name  # that has the default TTL
        ttl, ttl_from = topic_ttl(spec, config, kept)
        roles.append(
            TopicRole(
                name=name,
                **found.ways(ways, dimension),
                ttl=ttl,
                ttl_from=ttl_from,
                clocks=tuple(_clocks(spec, name, ways, found)),
                ttls={owner: _own_ttl(spec, config, owner, kept) for owner in said},
            )
        )
    return tuple(roles)


def _own_ttl(spec: PipelineSpec, config: Config, owner: Path, topic: str) -> tuple[int, str]:
    ttl, key = topic_ttl(as_said_by(spec, owner), config, topic)
    own = settings_at(spec, owner)
    events = None if own is None or own.state is None else own.state.events
    is_own = events is not None and (topic in events.overrides or events.default_ttl is not None)
    return ttl, f"{dotted(owner)}.{key}" if is_own else key


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Which ways to read topics queries have for what."""

    tables: frozenset[Way]
    joined: frozenset[Way]
    driving: frozenset[Way]
    rows: frozenset[Way]
    timed: frozenset[Way]

    @classmethod
    def of(
        cls,
        chains: Sequence[Sequence[SourceShape]],
        timed: Collection[Way],
        rows: Collection[Way],
    ) -> "_Found":
        events = [sources for sources in chains if not sources[0].table]
        return cls(
            tables=_ways(s for sources in chains for s in sources if s.table),
            joined=_ways(s for sources in events for s in sources[1:] if not s.table),
            driving=_ways(sources[0] for sources in events),
            rows=frozenset(rows),
            timed=frozenset(timed),
        )

    def ways(self, ways: set[Way], dimension: bool) -> dict[str, bool]:
        """Return the fields of Ways for some ways to read a topic.

        Args:
            ways: All of one topic.
            dimension: It is named under `state.dimensions`.
        """
        joined = bool(ways & self.joined)
        return {
            "dimension": dimension and joined,
            "table": bool(ways & self.tables),
            "side": not dimension and joined,
            "driving": bool(ways & self.driving),
            "rows_of_tables": bool(ways & self.rows),
            "timed": bool(ways & self.timed),
        }


def _clocks(spec: PipelineSpec, topic: str, ways: set[Way], found: _Found) -> Iterator[ClockRole]:
    """Yield what a topic is by each event time; the first one has the name of the topic."""
    order = (None, *spec.readings)
    readings = sorted({reading for _, reading in ways}, key=order.index)
    by_column: dict[str, list[str | None]] = {}
    own = (spec.topic(topic).event_time or "").lower()
    by_column[own] = []
    for reading in readings:
        column = spec.read_as(topic, reading).event_time or ""
        by_column.setdefault(column.lower(), []).append(reading)
    used = [some for some in by_column.values() if some]
    for number, some in enumerate(used):
        column = spec.read_as(topic, some[0]).event_time
        yield ClockRole(
            name=f"{topic}{CLOCK}{column or ''}" if number else topic,
            column=column,
            readings=tuple(some),
            **found.ways({(topic, reading) for reading in some}, topic in spec.state.dimensions),
        )


def way_of(source: SourceShape) -> Way:
    """Return the way in which a query reads a topic."""
    return source.topic, source.reading


def _ways(sources: Iterable[SourceShape]) -> frozenset[Way]:
    return frozenset(way_of(source) for source in sources)


def timed_topics(chains: Sequence[ChainShape]) -> frozenset[Way]:
    """Return the topics of tables whose changes are grouped as rows of their own, each as it is
    read."""
    timed = (chain.shape for chain in chains if is_timed(chain.shape))
    return _ways(
        source
        for shape in timed
        for each in (*shape.looked_up, shape)
        for source in each.sources
        if source.query is None
    )


def topics_of_rows(chains: Sequence[ChainShape]) -> frozenset[Way]:
    """Return the topics of tables whose rows a query is about, each as it is read."""
    shapes = (each.shape for each in chains if each.shape.is_table and not each.is_looked_up)
    return _ways(source for shape in shapes for source in shape.read)


def time_to_live(source: SourceShape, roles: Sequence[TopicRole]) -> int:
    """Return the milliseconds that events are kept where no `within` says so: those of a topic as
    long as its TTL, rows of groups as long as any topic of events that feeds them; 0 of tables."""
    topics = {source.topic}
    if source.query is not None:
        shapes = (*source.query.below, source.query)
        topics = {each.topic for shape in shapes for each in shape.read if not each.table}
    return max((role.ttl for role in roles if role.name in topics), default=0)

"""Joins of streams: which SELECTs make rows together, how long events are kept, which wait."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import (
    Duration,
    Kind,
    Query,
    Setting,
    Statement,
    With,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Events of joined streams that leave without a match once none can come any more."""

    at: Location
    grace: int
    """How long a match may be late, in ms."""


@dataclass(slots=True, kw_only=True)
class Joined:
    """How the events of SELECTs are joined whose joins make the same rows."""

    longest: int
    """The longest WITHIN of their joins, in ms; 0: they have none."""
    preserves: bool
    """Whether one of them is LEFT, RIGHT or OUTER, of two streams."""
    kept: dict[str, int] = field(default_factory=dict[str, int])
    """How long events of topics are kept for joins of streams, in ms."""
    apart: dict[str, int] = field(default_factory=dict[str, int])
    """How far matches may be apart, in ms, by what SELECTs call what they join; where events leave
    without a match."""
    looked_up: set[str] = field(default_factory=set[str])
    """Topics whose events leave nothing behind where they meet no row of a table."""
    matches: Matches | None = None
    """How joins of streams wait for matches; None: no event leaves without one."""

    @property
    def within(self) -> Mapping[str, int]:
        """How far matches of single joins may be apart, in ms; none where all say the same."""
        return self.apart if len(set(self.apart.values())) > 1 else {}

    @property
    def grace(self) -> int:
        """How long a match may be late, in ms."""
        return self.matches.grace if self.matches is not None else 0

    def waits_as(self, other: "Joined") -> bool:
        """Tell whether the same counts of how events wait."""
        alike = (self.matches is None) == (other.matches is None)
        return alike and self.grace == other.grace and self.within == other.within

    @property
    def ttls(self) -> Mapping[str, int]:
        """How long events are kept, in ms."""
        return {**dict.fromkeys(sorted(self.looked_up), 0), **self.kept}

    def keep(self, called: str, topics: Iterable[str], within: Duration, at: Location) -> bool:
        """Take down how long events of topics are kept for a join; tell whether others keep them
        longer, so that what they match must be looked at.

        Args:
            called: What the SELECT calls the joined source.
            topics: Whose events are joined.
            within: How far they may be apart.
            at: Where that stands.

        Raises:
            SqlError: A source of that name is joined within another time, too, and what does not
                match leaves.
        """
        for topic in sorted(topics):
            self.kept[topic] = max(self.kept.get(topic, 0), within.milliseconds)
        if not self.preserves:
            return within.milliseconds < self.longest
        other = self.apart.setdefault(called, within.milliseconds)
        if other != within.milliseconds:
            raise SqlError(
                f"'{called}' is joined WITHIN {format_duration(other)}, too",
                at,
                "give one of the two another name: JOIN … AS x",
            )
        return False

    def wait(self, at: Location, grace: Duration | None) -> None:
        """Take down that events wait for their matches.

        Raises:
            SqlError: They wait for another time elsewhere.
        """
        milliseconds = grace.milliseconds if grace is not None else 0
        if self.matches is not None and self.matches.grace != milliseconds:
            raise SqlError(
                f"the JOIN at {self.matches.at} has another GRACE BY",
                at,
                "write the same one in all joins of one row whose events wait",
            )
        self.matches = self.matches or Matches(at=at, grace=milliseconds)


def joined_together(statements: Iterable[Statement]) -> Mapping[int, Joined]:
    """Return how SELECTs with joins are joined, by their offsets; those of a WITH and of a SELECT
    that joins its rows make the same rows."""
    first: dict[int, int] = {}
    made: dict[str, set[int]] = {}
    queries: list[Query] = []
    for statement in statements:
        if isinstance(statement, Setting):
            continue
        query = statement.query
        sources = (query.source, *(join.source for join in query.joins))
        below = {number for each in sources for number in made.get(each.name.text, ())}
        if query.joins:
            queries.append(query)
            number = min(below, default=query.offset)
            first = {of: number if known in below else known for of, known in first.items()}
            first[query.offset] = number
            made = {name: {number} if known & below else known for name, known in made.items()}
            below = {number}
        if isinstance(statement, With) and not query.groups and query.kind == "STREAM":
            made[statement.name.text] = below
    joined = {
        number: _joined([query for query in queries if first[query.offset] == number])
        for number in set(first.values())
    }
    return {offset: joined[number] for offset, number in first.items()}


def _joined(queries: Iterable[Query]) -> Joined:
    within = [
        (join.side, join.within.milliseconds)
        for query in queries
        for join in query.joins
        if join.within is not None
    ]
    return Joined(
        longest=max((duration for _, duration in within), default=0),
        preserves=any(side != "INNER" for side, _ in within),
    )


def refuse_preserved(query: Query, kinds: Sequence[Kind], source: SourceText) -> None:
    """Refuse joins whose rows without a match would meet others once their time is over.

    Args:
        query: A SELECT with joins.
        kinds: What its sources are, in their order.
        source: Its text.

    Raises:
        SqlError: There is one.
    """
    of_streams = [
        (place, join)
        for place, join in enumerate(query.joins)
        if kinds[place + 1] == "STREAM" and "STREAM" in kinds[: place + 1]
    ]
    for place, join in of_streams:
        at = source.place(join.offset)
        if join.side == "FULL" and len(of_streams) > 1:
            raise SqlError(
                "an OUTER JOIN of streams stands beside another JOIN of streams",
                at,
                "write its rows to a topic, and join that in another processor; or write LEFT JOIN "
                "from the stream whose records are kept",
            )
        if join.side == "FULL" and place > 0:
            raise SqlError(
                "an OUTER JOIN of streams stands behind another JOIN",
                at,
                "write the OUTER JOIN first, and the JOIN of a TABLE behind it",
            )
        if join.side == "RIGHT" and place > 0:
            first = (join.source.alias or join.source.name).text
            raise SqlError(
                "a RIGHT JOIN of streams stands behind another JOIN",
                at,
                f"write FROM {first} LEFT JOIN …, so that '{first}' is the first one",
            )

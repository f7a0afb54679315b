"""What the oracle is told about a pipeline.

The interpreter knows no SQL: a query is handed over as joins, output columns and conditions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from tests.reference.beside import Headers, columns_in
from tests.reference.conditions import (
    Column,
    Condition,
    Term,
    Values,
    column_of,
    columns_of,
)
from tests.reference.grouping import Grouping

HOUR = 3_600_000
DAY = 24 * HOUR

Emission = Literal["immediate", "smart", "on_match", "final"]
OnExpiry = Literal["drop", "emit", "dead_letter"]
OnError = Literal["dead_letter", "skip", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """How far the times of events may be apart that match under `on_match`, in ms; None: as long as
    topics are kept."""

    before: int | None = None
    after: int | None = None
    grace: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as the pipeline uses it. Durations are in ms."""

    name: str
    columns: Mapping[str, str]
    """Column name to DuckDB type."""
    dimension: bool = False
    ttl: int = HOUR
    """Of the event role; for a dimension that drives, the default TTL."""
    event_time: str | None = None
    lateness: int = 0
    idle_timeout: int = 30_000
    max_future: int = DAY
    lookup: Literal["current", "as_of"] = "current"
    history: int | None = None
    """How long superseded versions stay; None: for ever."""
    key: str | None = None
    """The column that the Kafka key is; None: the join key."""
    partitions: int = 1
    on_error: OnError = "dead_letter"
    on_null: Literal["skip", "row"] = "skip"
    primary: tuple[str, ...] = ()
    """The columns that are the key of its rows where it is read as a table."""

    def finds_several(self, join: "Join") -> bool:
        """Tell whether a join looks up all rows of the table with its key, not the one of a key."""
        one = len(self.primary) == 1 and join.own == (Column(join.alias, self.primary[0]),)
        return bool(self.primary) and not one


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """One joined table: `alias` of `topic`, `on` pairs of (term read so far, own term)."""

    alias: str
    topic: str
    on: tuple[tuple[Term, Term], ...]
    inner: bool = False
    anti: bool = False
    """What matches leaves elsewhere: the other half of a FULL JOIN."""

    @property
    def key(self) -> tuple[Term, ...]:
        """The expressions of what was read before, in one order whatever was written."""
        return tuple(left for left, _ in self._sorted())

    @property
    def own(self) -> tuple[Term, ...]:
        """The own terms of the key, in the order of `key`."""
        return tuple(right for _, right in self._sorted())

    def _sorted(self) -> list[tuple[Term, Term]]:
        return sorted(self.on, key=repr)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnest:
    """A list that becomes rows, as `CROSS JOIN unnest(list) AS alias(name)` does."""

    alias: str
    name: str
    list: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output column."""

    name: str
    term: Term
    as_text: bool = False
    """A number that a union writes as text, because another of its branches has text."""

    def of(self, values: Values) -> object:
        """Compute the column.

        Raises:
            SqlFailure: The SQL fails on this row.
        """
        value = self.term.of(values)
        return str(value) if self.as_text and value is not None else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Joins that share a key."""

    key: tuple[Term, ...]
    joins: tuple[Join, ...]

    @property
    def anti(self) -> tuple[str, ...]:
        """The sides of which no match may be there."""
        return tuple(join.alias for join in self.joins if join.anti)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What a query reads. Queries with equal chains share it, others share nothing."""

    driving: str
    """Alias of the driving side."""
    driving_topic: str
    joins: tuple[Join, ...] = ()
    turned: bool = field(default=False, compare=False)
    """The driving side is written last, after RIGHT JOIN."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """Joins by key, in order of first appearance; a query without joins is one empty step."""
        found: dict[tuple[Term, ...], list[Join]] = {}
        for join in self.joins:
            found.setdefault(join.key, []).append(join)
        if not found:
            return (Step(key=(), joins=()),)
        return tuple(Step(key=key, joins=tuple(joins)) for key, joins in found.items())

    @property
    def sides(self) -> tuple[str, ...]:
        """The aliases."""
        return (self.driving, *(join.alias for join in self.joins))

    @property
    def topics(self) -> frozenset[str]:
        """The names of the topics that are read."""
        return frozenset({self.driving_topic, *(join.topic for join in self.joins)})

    def sides_of(self, topic: str) -> Iterator[Join]:
        """Yield the joins that read a topic."""
        return (join for join in self.joins if join.topic == topic)

    def terms(self) -> tuple[Term, ...]:
        """What the join conditions compare."""
        return tuple(term for join in self.joins for pair in join.on for term in pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One SELECT, and the output that its rows go to; those of a union have one output."""

    chain: Chain
    select: tuple[Output, ...]
    key: str | None = None
    """Name of the output column that is the Kafka key; None: rows have their own one."""
    key_in_value: bool = True
    where: tuple[Condition, ...] = ()
    """Conditions that are AND-ed."""
    unnests: tuple[Unnest, ...] = ()
    """Lists of the finished row, one after the other."""
    topic: str = "out"
    branch: int = 0
    """Place in the union."""
    groups: tuple[Grouping, ...] = ()
    """GROUP BY, one behind the other; `select` holds the entry rows of the first."""
    own_key: Term | None = None
    """The own key of rows, where a query below has made it; None: that of the driving record."""
    headers: Headers | None = None
    """Of the records."""

    @property
    def key_term(self) -> Term | None:
        """What the key is computed from."""
        return next((output.term for output in self.select if output.name == self.key), None)

    def keyed(
        self, row: Mapping[str, object], values: Values
    ) -> tuple[object, Mapping[str, object]]:
        """Return the key and the value of a row, which is made of values."""
        if self.groups:
            return None, row
        if self.key is None:
            return (self.own_key or Column(self.chain.driving, "_key")).of(values), row
        if self.key_in_value:
            return row[self.key], row
        return row[self.key], {name: each for name, each in row.items() if name != self.key}

    def columns(self) -> Iterator[Column]:
        """Yield the columns that the output reads; of elements that of their list."""
        terms = [column_of(output.term) for output in self.select]
        terms += [*columns_in(self.headers), *([column_of(self.own_key)] if self.own_key else [])]
        asked = (column for condition in self.where for column in columns_of(condition))
        yield from (self.list_behind(column) for column in (*terms, *asked))
        yield from (self.list_behind(each.list) for each in self.unnests)

    def list_behind(self, column: Column) -> Column:
        """Return the column whose lists hold the values of another one: most are their own."""
        behind = next((each.list for each in self.unnests if each.alias == column.alias), None)
        return column if behind is None else self.list_behind(behind)

    def unnested(self, values: Values) -> list[Values]:
        """Return the rows that the lists of a finished row make; without lists the row itself."""
        rows: list[Values] = [values]
        for each in self.unnests:
            rows = [
                {**row, each.alias: {each.name: element}}
                for row in rows
                for element in cast(list[object] | None, each.list.of(row)) or ()
            ]
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class OraclePipeline:
    """A pipeline, described."""

    topics: Mapping[str, Topic]
    writes: tuple[Write, ...]
    """In the order of the outputs, and of the branches of their unions."""
    emission: Emission = "immediate"
    require: tuple[str, ...] = ()
    on_expiry: OnExpiry = "drop"
    reemit: bool = False
    within: Within | None = None
    latest: bool = False
    """Joined rows have the greatest time of their events."""
    before: bool = False
    """A record is taken before what it changes of tables."""
    implied: bool = False
    """The author says nothing of the emission."""

    @property
    def chains(self) -> tuple[Chain, ...]:
        """The chains, in the order in which the outputs name them."""
        return tuple(dict.fromkeys(write.chain for write in self.writes))

    @property
    def outputs(self) -> tuple[tuple[Write, ...], ...]:
        """The branches of each output."""
        topics = dict.fromkeys(write.topic for write in self.writes)
        return tuple(tuple(w for w in self.writes if w.topic == topic) for topic in topics)

    def is_dimension(self, join: Join) -> bool:
        """Tell whether a join looks up a dimension."""
        return self.topics[join.topic].dimension

    def sides_of(self, topic: str) -> Iterator[Join]:
        """Yield the joins that read a topic, in any chain."""
        return (join for chain in self.chains for join in chain.sides_of(topic))

    def used(self, topic: str) -> frozenset[str]:
        """The columns of a topic that the queries read; no other is looked at."""
        clock = self.topics[topic].event_time
        found = {clock} if clock else set[str]()
        if any(map(self.topics[topic].finds_several, self.sides_of(topic))):
            found |= {*self.topics[topic].primary}
        for chain in self.chains:
            topics = {join.alias: join.topic for join in chain.joins}
            topics[chain.driving] = chain.driving_topic
            columns = [column_of(term) for term in chain.terms()]
            own = (write for write in self.writes if write.chain == chain)
            columns += [column for write in own for column in write.columns()]
            found |= {column.name for column in columns if topics[column.alias] == topic}
        return frozenset(found)

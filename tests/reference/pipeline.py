"""What the oracle is told about a pipeline.

The interpreter knows no SQL: a query is handed over as joins, output columns and conditions.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from tests.reference.conditions import (
    Column,
    Condition,
    Term,
    Values,
    aliases_of,
    column_of,
    columns_of,
)

HOUR = 3_600_000
DAY = 24 * HOUR

Emission = Literal["immediate", "smart", "final"]
OnExpiry = Literal["drop", "emit", "dead_letter"]
OnError = Literal["dead_letter", "skip", "fail"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """One joined table: `alias` of `topic`, `on` pairs of (term read so far, own term)."""

    alias: str
    topic: str
    on: tuple[tuple[Term, Term], ...]
    inner: bool = False

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Joins that share a key."""

    key: tuple[Term, ...]
    joins: tuple[Join, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """What one output takes of the finished rows."""

    select: tuple[Output, ...]
    key: str | None = None
    """Name of the output column that is the Kafka key; None: rows without a key."""
    key_in_value: bool = True
    where: tuple[Condition, ...] = ()
    """Conditions that are AND-ed."""
    unnests: tuple[Unnest, ...] = ()
    """Lists of the finished row, one after the other."""
    topic: str = "out"

    @property
    def key_term(self) -> Term | None:
        """What the key is computed from."""
        return next((output.term for output in self.select if output.name == self.key), None)

    def keyed(self, row: Mapping[str, object]) -> tuple[object, Mapping[str, object]]:
        """Return the key and the value of a row."""
        if self.key is None or self.key_in_value:
            return None if self.key is None else row[self.key], row
        return row[self.key], {name: each for name, each in row.items() if name != self.key}

    def columns(self) -> Iterator[Column]:
        """Yield the columns that the output reads; of elements that of their list."""
        terms = (column_of(output.term) for output in self.select)
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

    driving: str
    """Alias of the driving side."""
    driving_topic: str
    topics: Mapping[str, Topic]
    writes: tuple[Write, ...]
    """The outputs; the rows of all of them come from the same joins."""
    joins: tuple[Join, ...] = ()
    emission: Emission = "immediate"
    require: tuple[str, ...] = ()
    on_expiry: OnExpiry = "drop"
    reemit: bool = False

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
    def ttl(self) -> int:
        """The TTL of the driving topic."""
        return self.topics[self.driving_topic].ttl

    def sides_of(self, topic: str) -> Iterator[Join]:
        """Yield the joins that read a topic."""
        return (join for join in self.joins if join.topic == topic)

    def is_dimension(self, join: Join) -> bool:
        """Tell whether a join looks up a dimension."""
        return self.topics[join.topic].dimension

    def event_topics(self) -> tuple[Topic, ...]:
        """The topics that hold the watermark."""
        names = sorted({self.driving_topic, *(join.topic for join in self.joins)})
        return tuple(self.topics[name] for name in names if not self.topics[name].dimension)

    def used(self, topic: str) -> frozenset[str]:
        """The columns of a topic that the query reads; no other is looked at."""
        terms = [term for join in self.joins for pair in join.on for term in pair]
        columns = [column_of(term) for term in terms]
        columns += [column for write in self.writes for column in write.columns()]
        topics = {join.alias: join.topic for join in self.joins} | {
            self.driving: self.driving_topic
        }
        clock = self.topics[topic].event_time
        return frozenset(
            [column.name for column in columns if topics[column.alias] == topic]
            + ([clock] if clock else [])
        )

    def common_where(self) -> tuple[Condition, ...]:
        """The conditions of all outputs."""
        first, *others = self.writes
        return tuple(c for c in first.where if all(c in other.where for other in others))

    def driving_where(self) -> tuple[Condition, ...]:
        """The conditions of all outputs that touch only the driving side."""
        return tuple(c for c in self.common_where() if aliases_of(c) <= {self.driving})

    def rest_where(self, write: Write) -> tuple[Condition, ...]:
        """The other conditions of an output."""
        early = self.driving_where()
        return tuple(c for c in write.where if c not in early)

    def required(self) -> tuple[Term, ...]:
        """What must not be NULL under smart: `require` in any output, and a key of all.

        Rows wait for the list of a side rather than for its elements.
        """
        if self.emission != "smart":
            return ()
        names = set(self.require)
        terms = [o.term for write in self.writes for o in write.select if o.name in names]
        keys = {write.key_term for write in self.writes}
        if len(keys) == 1 and (key := keys.pop()) is not None:
            column, behind = column_of(key), self.writes[0].list_behind(column_of(key))
            if column == behind:
                terms.append(key)
            elif behind.alias != self.driving:
                terms.append(behind)
        return tuple(terms)

"""One chain of a pipeline, with what the pipeline says of it: what runs record at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.reference.conditions import Column, Condition, Term, aliases_of, column_of
from tests.reference.pipeline import (
    Chain,
    Emission,
    Join,
    OnExpiry,
    OraclePipeline,
    Step,
    Topic,
    Within,
    Write,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleChain:
    """A chain and the queries over it."""

    chain: Chain
    topics: Mapping[str, Topic]
    writes: tuple[Write, ...]
    """The queries; the rows of all of them come from the same joins."""
    name: str
    """What dead letters call it; empty where the pipeline has no other."""
    emission: Emission
    require: tuple[str, ...]
    on_expiry: OnExpiry
    reemit: bool
    within: Within
    latest: bool
    copies: tuple[Write, ...]
    """The queries that select all columns of a topic, and nothing else."""

    @classmethod
    def all_of(cls, pipeline: OraclePipeline) -> tuple["OracleChain", ...]:
        """Take a pipeline apart."""
        return tuple(
            cls(
                chain=chain,
                topics=pipeline.topics,
                writes=tuple(write for write in pipeline.writes if write.chain == chain),
                name=_name(pipeline, chain) if _are_several(pipeline) else "",
                emission=_emission(pipeline, chain),
                require=pipeline.require,
                on_expiry=pipeline.on_expiry,
                reemit=pipeline.reemit,
                within=pipeline.within or Within(),
                latest=pipeline.latest,
                copies=tuple(
                    only
                    for (only, *more) in pipeline.outputs
                    if not more and only.chain == chain and _is_copy(only, pipeline.topics)
                ),
            )
            for chain in pipeline.chains
        )

    @property
    def driving(self) -> str:
        """Alias of the driving side."""
        return self.chain.driving

    @property
    def driving_topic(self) -> str:
        """The topic that drives."""
        return self.chain.driving_topic

    @property
    def joins(self) -> tuple[Join, ...]:
        """The joined tables."""
        return self.chain.joins

    @property
    def steps(self) -> tuple[Step, ...]:
        """Joins by key."""
        return self.chain.steps

    @property
    def ttl(self) -> int:
        """How long a driving record may wait, in ms."""
        if self.emission != "on_match":
            return self.topics[self.driving_topic].ttl
        return self._after + self.within.grace

    def kept(self, topic: str) -> int:
        """Return how long the records of a joined topic of events meet others, in ms."""
        if self.emission != "on_match":
            return self.topics[topic].ttl
        return self._before(topic) + self.within.grace

    def near(self, driving: int, topic: str, side: int) -> bool:
        """Tell whether the times of a driving record and of one that is joined let them match.

        The TTL rule: the later one comes within the TTL of the earlier one. Under `on_match` what
        the author says of the left and the right one.
        """
        if self.emission == "on_match":
            return driving - self._before(topic) <= side <= driving + self._after
        if driving <= side:
            return side <= driving + self.ttl
        return driving <= side + self.topics[topic].ttl

    @property
    def _after(self) -> int:
        said = self.within.before if self.chain.turned else self.within.after
        return self.topics[self.driving_topic].ttl if said is None else said

    def _before(self, topic: str) -> int:
        said = self.within.after if self.chain.turned else self.within.before
        return self.topics[topic].ttl if said is None else said

    @property
    def filters(self) -> bool:
        """Tell whether a row without a match of what it looks up goes nowhere, and never waits."""
        events = any(not self.topics[join.topic].dimension for join in self.joins)
        return (
            bool(self.joins)
            and not events
            and self.emission == "immediate"
            and self.within == Within(before=0, after=0)
        )

    def waits_for(self, join: Join) -> bool:
        """Tell whether a row without a match of a side waits until its time is up."""
        event = not self.topics[join.topic].dimension
        return self.emission == "on_match" and event and not join.inner

    def sides_of(self, topic: str) -> Iterator[Join]:
        """Yield the joins that read a topic."""
        return self.chain.sides_of(topic)

    def shown_of(self, join: Join) -> frozenset[str]:
        """Return the columns of a joined side that are read beside its own key."""
        later = [column_of(term) for each in self.joins for term in each.key]
        columns = [*later, *(column for write in self.writes for column in write.columns())]
        return frozenset(column.name for column in columns if column.alias == join.alias)

    def event_topics(self) -> tuple[Topic, ...]:
        """The topics that hold the watermark of the chain."""
        topics = (self.topics[name] for name in sorted(self.chain.topics))
        return tuple(topic for topic in topics if not topic.dimension)

    def common_where(self) -> tuple[Condition, ...]:
        """The conditions of all queries."""
        first, *others = self.writes
        return tuple(c for c in first.where if all(c in other.where for other in others))

    def driving_where(self) -> tuple[Condition, ...]:
        """The conditions of all queries that touch only the driving side."""
        return tuple(c for c in self.common_where() if aliases_of(c) <= {self.driving})

    def rest_where(self, write: Write) -> tuple[Condition, ...]:
        """The other conditions of a query."""
        early = self.driving_where()
        return tuple(c for c in write.where if c not in early)

    def required(self) -> tuple[Term, ...]:
        """What must not be NULL under smart: `require` in any query, and a key of all.

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


def _are_several(pipeline: OraclePipeline) -> bool:
    """Tell whether there are several chains; a table that is looked up by other columns than its
    key is one of its own."""
    joins = (join for chain in pipeline.chains for join in chain.joins)
    several = any(pipeline.topics[join.topic].finds_several(join) for join in joins)
    return several or len(pipeline.chains) > 1


def _emission(pipeline: OraclePipeline, chain: Chain) -> Emission:
    """Return how joined rows leave; where all are grouped, `final` is about the groups, unless rows
    would leave before their matches, and where nothing is said, they leave once.
    """
    writes = [write for write in pipeline.writes if write.chain == chain]
    events = [join for join in chain.joins if not pipeline.is_dimension(join)]
    grouped, inner = all(write.groups for write in writes), all(join.inner for join in events)
    if grouped and inner and pipeline.emission == "final":
        return "immediate"
    if grouped and events and pipeline.implied:
        return "on_match"
    return "immediate" if pipeline.emission == "on_match" and not events else pipeline.emission


def _name(pipeline: OraclePipeline, chain: Chain) -> str:
    """Return what the first query of a chain writes, and which branch of it that is."""
    first = next(write for write in pipeline.writes if write.chain == chain)
    return f"{first.topic}#{first.branch}" if first.branch else first.topic


def _is_copy(write: Write, topics: Mapping[str, Topic]) -> bool:
    chain = write.chain
    if chain.joins or write.unnests or write.groups:
        return False
    own = [each for each in write.select if write.key_in_value or each.name != write.key]
    columns = [(name, Column(chain.driving, name)) for name in topics[chain.driving_topic].columns]
    return [(each.name, each.term) for each in own] == columns

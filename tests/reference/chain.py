"""One chain of a pipeline, with what the pipeline says of it: what runs record at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.reference.conditions import Condition, Term, aliases_of, column_of
from tests.reference.pipeline import (
    Chain,
    Emission,
    Join,
    OnExpiry,
    OraclePipeline,
    Step,
    Topic,
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

    @classmethod
    def all_of(cls, pipeline: OraclePipeline) -> tuple["OracleChain", ...]:
        """Take a pipeline apart."""
        return tuple(
            cls(
                chain=chain,
                topics=pipeline.topics,
                writes=tuple(write for write in pipeline.writes if write.chain == chain),
                name=_name(pipeline, chain) if len(pipeline.chains) > 1 else "",
                emission=_emission(pipeline, chain),
                require=pipeline.require,
                on_expiry=pipeline.on_expiry,
                reemit=pipeline.reemit,
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
        """The TTL of the driving topic."""
        return self.topics[self.driving_topic].ttl

    def sides_of(self, topic: str) -> Iterator[Join]:
        """Yield the joins that read a topic."""
        return self.chain.sides_of(topic)

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


def _emission(pipeline: OraclePipeline, chain: Chain) -> Emission:
    """Return how joined rows leave; where all are grouped, `final` is about the groups, unless rows
    would leave before their matches.
    """
    writes = [write for write in pipeline.writes if write.chain == chain]
    events = (join for join in chain.joins if not pipeline.is_dimension(join))
    if not all(write.groups for write in writes) or not all(join.inner for join in events):
        return pipeline.emission
    return "immediate" if pipeline.emission == "final" else pipeline.emission


def _name(pipeline: OraclePipeline, chain: Chain) -> str:
    """Return what the first query of a chain writes, and which branch of it that is."""
    first = next(write for write in pipeline.writes if write.chain == chain)
    return f"{first.topic}#{first.branch}" if first.branch else first.topic

"""Tables that events look up by other columns than the key: one for all joins that call it so.

Each keeps the rows of its topic as `tables` says; the joins get what changes of them.
"""

from collections import Counter
from collections.abc import Mapping

from tests.reference.conditions import Column, column_of
from tests.reference.pipeline import OraclePipeline
from tests.reference.records import Fact, Record
from tests.reference.table_query import Tables, TableTopic
from tests.reference.tables import Change, OneTables

Changes = Mapping[tuple[str, str], tuple[Change, ...]]
"""By alias and topic."""


class LookedUp:
    """The tables of a pipeline."""

    def __init__(self, pipeline: OraclePipeline) -> None:
        joins = {
            (join.alias, join.topic)
            for chain in pipeline.chains
            for join in chain.joins
            if pipeline.topics[join.topic].finds_several(join)
        }
        self._tables = {place: _table(pipeline, *place) for place in sorted(joins)}

    @property
    def topics(self) -> frozenset[str]:
        """Their topics."""
        return frozenset(topic for _, topic in self._tables)

    @property
    def counters(self) -> Counter[str]:
        """What became of their records."""
        return sum((table.counters for table in self._tables.values()), Counter[str]())

    def take(self, fact: Fact) -> Changes:
        """Take a record; return what it changes."""
        record = Record(
            topic=fact.record.topic,
            offset=fact.record.offset,
            ts=fact.ts,
            key=fact.record.key,
            value=fact.record.value,
        )
        return {place: tuple(table.take(record)) for place, table in self._tables.items()}

    def refuse(self, record: Record, what: str) -> None:
        """Count a record that is none of a table."""
        for (_, topic), table in self._tables.items():
            if topic == record.topic:
                found = "skipped" if what == "skipped" else "dead_letter"
                table.counters.update(["read", found])


def _table(pipeline: OraclePipeline, alias: str, name: str) -> OneTables:
    topic = pipeline.topics[name]
    own = () if topic.primary == ("_key",) else topic.primary
    table = TableTopic(name=name, columns=topic.columns, primary_key=own)
    kept = {column.name for column in _columns(pipeline, name) if column.alias == alias}
    tables = Tables(sources=((alias, name),))
    return OneTables(tables, {name: table}, {alias: frozenset({*kept, *topic.primary})}, {}, "")


def _columns(pipeline: OraclePipeline, topic: str) -> list[Column]:
    """Return what is read by the chains that join a topic."""
    chains = [chain for chain in pipeline.chains if any(chain.sides_of(topic))]
    terms = [column_of(term) for chain in chains for term in chain.terms()]
    writes = [write for write in pipeline.writes if write.chain in chains]
    return terms + [column for write in writes for column in write.columns()]

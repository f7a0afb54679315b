"""Topics that are read in several ways, in the oracle's terms: as many topics with equal records.

A record comes to the copies of its topic each at the time that its reading has, at one time tables
first. The oracle then says the same as of one topic, as long as records of other places have other
times.
"""

# pyright: basic

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from tests.reference.dimensions import dimensions_as_tables
from tests.reference.grouped import parsed
from tests.reference.own_settings import authors_of
from tests.reference.records import Batch, BatchResult, DeadLetter, Record
from tests.reference.table_sql import is_over_tables
from tests.reference.unions import NotExpressible

Author = Mapping[str, Any]
Columns = Mapping[str, Mapping[str, str]]

_OF_READING = ("event_time", "primary_key", "operation", "retain", "table")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A pipeline in which each reading is a topic."""

    author: Author
    columns: Columns
    copies: Mapping[str, tuple[str, ...]] | None
    """The names under which each topic is read; None: its own alone."""

    def batch(self, batch: Batch) -> Batch:
        """Return a batch with the records of these topics."""
        if self.copies is None:
            return replace(batch, records=tuple(map(self._deleting, batch.records)))
        records: list[Record] = [
            self._deleting(replace(record, topic=name))
            for record in batch.records
            for name in self.copies.get(record.topic, ())
        ]
        return replace(batch, records=tuple(records))

    def _deleting(self, record: Record) -> Record:
        """Return what a record is to events that look its table up: a null value deletes."""
        said = self.author.get("topics", {}).get(record.topic, {})
        if is_over_tables(self.author) or "operation" not in said or record.value is None:
            return record
        kind, _, name = said["operation"].partition(":")
        operation = (record.headers if kind == "header" else record.value).get(name)
        if operation != "d":
            return record
        (key,) = said["primary_key"]
        return replace(record, key=str(record.value[key]), value=None)

    def result(self, result: BatchResult) -> BatchResult:
        """Return a result with dead letters of the topics that there are."""
        if self.copies is None:
            return result
        topics = {name: topic for topic, names in self.copies.items() for name in names}
        letters = [
            replace(x, topic=topics[x.topic], chain=self._clock(x) or x.chain)
            for x in result.dead_letters
        ]
        return replace(result, dead_letters=tuple(once_each(letters)))

    def _clock(self, letter: DeadLetter) -> str | None:
        """Return by which time a record is bad, of one that has none."""
        said = self.author["topics"].get(letter.topic, {})
        return f"@{said.get('event_time')}" if letter.phase == "event_time" else None


def once_each(letters: Iterable[DeadLetter]) -> Iterator[DeadLetter]:
    """Yield dead letters, those of records on their arrival once: a topic is read once, however
    many readings it has, and once by each event time."""
    known: set[DeadLetter] = set()
    for letter in letters:
        if letter.phase not in ("decode", "event_time") or letter not in known:
            yield letter
        known.add(letter)


def parts_of(author: Author, columns: Columns | None) -> Iterator[Part]:
    """Yield a pipeline as it is, or one for each output where topics have readings, or queries say
    things themselves."""
    for each in authors_of(author):
        yield from _parts(each, columns, whole=each is author)


def _parts(author: Author, columns: Columns | None, *, whole: bool) -> Iterator[Part]:
    known = dict(columns or {})
    relations = author.get("relations", {})
    outputs = author.get("outputs") or [author["output"]]
    if any("lookup" in spec for spec in (*relations.values(), *outputs)):
        raise NotExpressible("what the records of one query see of what they change themselves")
    if "lookup" in author and "within" not in author:  # its own part would come to what waits
        queries = [spec.get("query", "") for spec in (author, *relations.values(), *outputs)]
        if any("JOIN" in query.replace("LEFT JOIN", "") for query in queries):
            raise NotExpressible("rows that wait, without what their record changes itself")
    if any("type" in output for output in outputs):
        raise NotExpressible("outputs that are no topics")
    if any("key_format" in each for each in (*outputs, *author.get("topics", {}).values())):
        raise NotExpressible("keys that are no text")
    if any(isinstance(output.get("key"), list) for output in outputs):
        raise NotExpressible("keys of several columns")
    if any({"changes", "operation"} & output.keys() for output in outputs):
        raise NotExpressible("changes as rows of their own")
    author = dimensions_as_tables(_kept(author, outputs))
    relations = author.get("relations", {})
    if any(spec.get("type") == "dynamic_table" for spec in relations.values()):
        raise NotExpressible("dynamic tables")
    if any("from" in spec for spec in relations.values()):
        raise NotExpressible("the last row of each key")
    readings = {name: spec["topic"] for name, spec in relations.items() if "topic" in spec}
    if not readings and whole:
        yield Part(author=author, columns=known, copies=None)
        return
    topics = dict(author.get("topics", {}))
    for name, topic in readings.items():
        of_topic = topics.get(topic, {})
        said = {key: relations[name][key] for key in _OF_READING if key in relations[name]}
        clock = {"event_time": of_topic["event_time"]} if "event_time" in of_topic else {}
        decoding = {key: value for key, value in of_topic.items() if key not in _OF_READING}
        topics[name] = {**decoding, **clock, **said}
        known[name] = known.get(topic) or of_topic["columns"]
    queries = {name: spec for name, spec in relations.items() if name not in readings}
    rest = {key: value for key, value in author.items() if key not in ("query", "output")}
    for output in author.get("outputs") or [{"query": author["query"], **author["output"]}]:
        names = _names(output.get("query") or f'FROM "{output["from"]}"', queries)
        copies: dict[str, tuple[str, ...]] = {}
        for name in sorted(names):
            topic = readings.get(name, name)
            copies[topic] = (*copies.get(topic, ()), name)
        own = {name: spec for name, spec in topics.items() if name in names}
        yield Part(
            author={**rest, "relations": queries, "outputs": [output], "topics": own},
            columns=known,
            copies=copies,
        )


def _kept(author: Author, outputs: Iterable[Mapping[str, Any]]) -> Author:
    """Return a pipeline in which changes of rows are tables, where all that is read of them is
    grouped or joined to others.

    Raises:
        NotExpressible: Some leave as they come.
    """
    kinds = ("relations", "topics")
    changes = {
        name
        for kind in kinds
        for name, spec in author.get(kind, {}).items()
        if "operation" in spec and not spec.get("table")
    }
    if not changes:
        return author
    queries = {name: spec for name, spec in author.get("relations", {}).items() if "query" in spec}
    own = {name for kind in kinds for name, spec in author.get(kind, {}).items() if "table" in spec}
    tables = own | changes
    for output in outputs:
        sql = output.get("query") or author.get("query") or f'FROM "{output["from"]}"'
        tree = parsed(sql)
        first = tree.args.get("from_") or tree.args.get("from")
        driving = _names(f'FROM "{first.this.name}"', queries)
        joined = [each.this.name for each in tree.args.get("joins") or ()]
        events = set().union(*(_names(f'FROM "{name}"', queries) for name in joined)) - tables
        grouped = tree.args.get("group") or tree.find(exp.AggFunc)
        if driving & changes and not grouped and not events:
            raise NotExpressible("changes of rows, which test_upserts is about")
    kept = {
        kind: {
            name: {**spec, "table": True} if name in changes else spec
            for name, spec in author.get(kind, {}).items()
        }
        for kind in kinds
    }
    return {**author, **kept}


def _names(sql: str, queries: Mapping[str, Any]) -> set[str]:
    """Return the topics and readings behind a query."""
    found: set[str] = set()
    for table in parsed(sql).find_all(exp.Table):
        name = ".".join(part.name for part in table.parts)
        found |= _names(queries[name]["query"], queries) if name in queries else {name}
    return found

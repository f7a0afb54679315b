"""Run a case of a case file through the oracle."""

# pyright: basic

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from tests.reference.authored import declared, duration, oracle_pipeline
from tests.reference.interpreter import Oracle
from tests.reference.pipeline import HOUR
from tests.reference.readings import Part, once_each, parts_of
from tests.reference.records import Batch, BatchResult, DeadLetter, Emitted, Record
from tests.reference.sources import with_sources_as_topics
from tests.reference.table_interpreter import TableOracle
from tests.reference.table_sql import is_over_tables, read_tables
from tests.reference.throttle import Throttled, paces

Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What the oracle made of a case."""

    topics: tuple[str, ...]
    """Those that the outputs write."""
    batches: tuple[Batch, ...]
    results: tuple[BatchResult, ...]

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """All dead letters, sorted."""
        return sorted(letter for result in self.results for letter in result.dead_letters)

    @property
    def counters(self) -> Mapping[str, int]:
        """Totals at the end."""
        return self.results[-1].counters if self.results else {}


def run_case(case: Case, folder: Path) -> Ran:
    """Run one case; `folder` is where its file stands.

    Raises:
        NotExpressible: where the oracle cannot tell.
    """
    author = case["pipeline"]
    if isinstance(author, str):
        author = yaml.safe_load((folder / author).read_text())
    author = with_sources_as_topics(author)
    ran = [_ran(case, part) for part in parts_of(author, case.get("topics"))]
    first = ran[0]
    longest = max((each.batches for each in ran), key=len)
    return Ran(
        topics=tuple(topic for each in ran for topic in each.topics),
        batches=longest,
        results=tuple(_together([each.results for each in ran], len(longest)))
        if len(ran) > 1
        else first.results,
    )


def _together(of_parts: Sequence[Sequence[BatchResult]], count: int) -> Iterator[BatchResult]:
    """Yield the results of several pipelines as those of one."""
    for number in range(count):
        here = [results[number] for results in of_parts if number < len(results)]
        so_far = [results[min(number, len(results) - 1)] for results in of_parts if results]
        yield BatchResult(
            rows=tuple(row for each in here for row in each.rows),
            dead_letters=tuple(once_each(x for each in here for x in each.dead_letters)),
            counters=sum((Counter(each.counters) for each in so_far), Counter[str]()),
            watermarks=tuple(mark for each in so_far for mark in each.watermarks),
        )


def _ran(case: Case, part: Part) -> Ran:
    author, columns = part.author, part.columns
    given = [item for item in case["given"] if isinstance(item, dict) and "topic" in item]
    sizes = Counter[str]()
    for item in given:
        for name in (part.copies or {}).get(item["topic"], (item["topic"],)):
            sizes[name] = max(sizes[name], item.get("partition", 0) + 1)
    config = case.get("config", {}).get("state", {})
    oracle: Oracle | TableOracle | Throttled
    if is_over_tables(author):
        writes, tables = read_tables(author, declared(author, columns), sizes, duration)
        oracle, topics = TableOracle(writes, tables), [write.topic for write in writes]
    else:
        pipeline = oracle_pipeline(
            author,
            columns,
            default_ttl=duration(config["ttl"]) if "ttl" in config else HOUR,
            partitions=sizes,
        )
        oracle, topics = Oracle(pipeline), [each[0].topic for each in pipeline.outputs]
    oracle = Throttled(oracle, paces(author, duration))
    batches = list(batches_of(case))
    results = [part.result(oracle.run(part.batch(batch))) for batch in batches]
    end = batches[-1].time if batches else 0
    if case.get("bounded"):
        batches.append(Batch(time=end, last=True))
        results.append(part.result(oracle.run(batches[-1])))
    elif oracle.is_due:
        batches.append(Batch(time=end))
        results.append(part.result(oracle.run(batches[-1])))
    return Ran(topics=tuple(topics), batches=tuple(batches), results=tuple(results))


def batches_of(case: Case) -> Iterator[Batch]:
    """Cut the given records into batches."""
    waiting: list[Record] = []
    offsets = Counter[tuple[str, int]]()
    greatest = _ms(case["start"]) if "start" in case else None
    added = 0
    for item in case["given"]:
        if isinstance(item, dict) and "topic" in item:
            waiting.append(_record(item, offsets))
            if "start" not in case:
                at = waiting[-1].ts
                greatest = at if greatest is None else max(greatest, at)
            continue
        if waiting:
            yield Batch(time=(greatest or 0) + added, records=tuple(waiting))
            waiting = []
        if isinstance(item, dict):
            added += duration(item["advance"])
            yield Batch(time=(greatest or 0) + added)
    if waiting:
        yield Batch(time=(greatest or 0) + added, records=tuple(waiting))


def differences(case: Case, ran: Ran) -> list[str]:
    """Compare what a case expects with what the oracle says."""
    wrong: list[str] = []
    topics = ran.topics
    wanted = Counter(_expected(row, topics) for row in case.get("expect", []))
    placed = [(number, row) for number, result in enumerate(ran.results, 1) for row in result.rows]
    actual = Counter(_actual(row) for _, row in placed)
    if "expect" in case and wanted != actual:
        wrong.append(f"rows: missing {dict(wanted - actual)}, unexpected {dict(actual - wanted)}")
    for place in dict.fromkeys(row[:2] for row in wanted if row[1] is not None):
        lists = [
            [row for row in rows if row[:2] == place]
            for rows in (
                [_expected(row, topics) for row in case["expect"]],
                [_actual(row) for _, row in placed],
            )
        ]
        if lists[0] != lists[1]:
            wrong.append(f"order of {place}: {lists[1]}")
    for row in (row for row in case.get("expect", []) if "in_batch" in row or "at" in row):
        found = [(n, r.timestamp) for n, r in placed if _actual(r) == _expected(row, topics)]
        at, batch = _ms(row["at"]) if "at" in row else None, row.get("in_batch")
        if not any(batch in (None, n) and at in (None, time) for n, time in found):
            wrong.append(f"in batches and at {found}: {row}")
    for row in (row for row in case.get("expect", []) if "headers" in row):
        came = [r.headers for _, r in placed if _actual(r) == _expected(row, topics)]
        if tuple(row["headers"].items()) not in came:
            wrong.append(f"headers {came}: {row}")
    if "expect_table" in case:
        last = {(row.topic, _text(row.key)): row.value for _, row in placed if row.key is not None}
        came = {place: _json(value) for place, value in last.items() if value is not None}
        table = {_expected(row, topics)[:2]: _json(row["value"]) for row in case["expect_table"]}
        if table != came:
            wrong.append(f"tables: {came}, expected {table}")
    letters = [f"{x.topic} {x.offset} {x.phase}" for x in ran.dead_letters]
    expected = sorted(
        f"{x['topic']} {x['offset']} {x['phase']}" for x in case.get("expect_dead_letters", [])
    )
    if "expect_dead_letters" in case and expected != sorted(letters):
        wrong.append(f"dead letters: {letters}")
    for name, count in case.get("expect_counters", {}).items():
        if ran.counters.get(name) != count:
            wrong.append(f"counter {name}: {ran.counters.get(name)}, expected {count}")
    raw = [json.dumps(row.value, separators=(",", ":"), ensure_ascii=False) for _, row in placed]
    if "expect_raw" in case and case["expect_raw"] != raw:
        wrong.append(f"values in order: {raw}")
    return wrong


def _record(item: Mapping[str, Any], offsets: Counter[tuple[str, int]]) -> Record:
    place = (item["topic"], item.get("partition", 0))
    offset = item.get("offset", offsets[place])
    offsets[place] = offset + 1
    value, raw = item.get("value"), None
    if "raw" in item or "raw_base64" in item:
        raw = b64decode(item["raw_base64"]) if "raw_base64" in item else item["raw"].encode()
        try:
            value = json.loads(raw)
        except ValueError:
            value = None
        value, raw = (value, None) if isinstance(value, dict) else (None, raw)
    return Record(
        topic=item["topic"],
        partition=place[1],
        offset=offset,
        ts=_ms(item["at"]),
        key=item.get("key"),
        value=value,
        raw=raw,
        headers=item.get("headers", {}),
    )


def _ms(at: datetime | str | int) -> int:
    if isinstance(at, int):
        return at
    moment = at if isinstance(at, datetime) else datetime.fromisoformat(at)
    return round(moment.timestamp() * 1000)


def _expected(row: Mapping[str, Any], topics: Sequence[str]) -> tuple[str, str | None, str]:
    topic = row.get("topic", topics[0])
    if topic not in topics:
        raise ValueError(topic)
    return topic, _text(row.get("key")), _json(row["value"])


def _actual(row: Emitted) -> tuple[str, str | None, str]:
    return row.topic, _text(row.key), _json(row.value)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)

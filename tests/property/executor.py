"""Runs a scenario through the engine's local executor."""

# pyright: basic

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import pyarrow as pa

from kaflow_engine.errors import Location, SourceError
from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalBatch, LocalPipeline, never
from kaflow_engine.testing.local.world import Crashed, Point
from tests.property.dice import Dice
from tests.property.render import to_mapping
from tests.property.scenario import Interpreted, Scenario
from tests.reference.interpreter import CLASSES
from tests.reference.records import Batch, Record

COUNTED = (
    "read",
    "late",
    "used",
    *CLASSES,
    "null_key",
    "tombstones_ignored",
    "skipped_side",
    "side_dead_letters",
    "late_rows",
)
CRASHES = 20
_ROW = 0


Letter = tuple[str, int, int, str, str, bytes]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What can be compared: of each batch the rows by topic and key, in order, and dead letters."""

    rows: tuple[Mapping[str, list[tuple[str, int]]], ...]
    dead_letters: tuple[list[Letter], ...]
    """Where each record was, why it is a dead letter, in which chain, and its original bytes."""
    counters: Mapping[str, int]
    watermarks: tuple[tuple[int | None, ...], ...]
    """Of each chain, at the start of each batch; None: not yet known, or the end."""
    stops: bool
    """The batch after these ends in an error."""


def seen_by_oracle(scenario: Scenario, said: Interpreted) -> Seen:
    """Bring the oracle's results into comparable form."""
    ordered = _ordered(scenario)
    originals = {(r.topic, r.partition, r.offset): _original(r) for r in scenario.records}
    rows: list[Mapping[str, list[tuple[str, int]]]] = []
    for result in said.results:
        by_key: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for row in result.rows:
            shown = _shown(row.value, row.headers)
            by_key[f"{row.topic} {row.key}"].append((shown, row.timestamp))
        rows.append(_in_order(by_key, ordered))
    return Seen(
        rows=tuple(rows),
        dead_letters=tuple(
            sorted(
                (*letter.place, letter.phase, letter.chain, originals[letter.place] or b"")
                for letter in result.dead_letters
            )
            for result in said.results
        ),
        counters={name: said.counters.get(name, 0) for name in COUNTED},
        watermarks=tuple(tuple(map(_finite, result.watermarks)) for result in said.results),
        stops=said.stops,
    )


@dataclass(frozen=True, kw_only=True)
class How:
    """How the engine runs a scenario; the outcome must be the same."""

    spread: bool = False
    """In several tasks."""
    replay: bool = False
    """Every batch twice."""
    crashes: int | None = None
    """Seed of the crashes; None: there are none."""

    @classmethod
    def of(cls, seed: int | str) -> "How":
        """Choose a way."""
        dice = Dice(f"how {seed}")
        return cls(
            spread=dice.one_in(6),
            replay=dice.one_in(12),
            crashes=dice.number(1, 1 << 30) if dice.one_in(8) else None,
        )


def crashes(seed: int | None) -> Point:
    """Return what ends a run at about every 24th point, with or without the local copies.

    One whose batches have many points would hardly ever end, so `CRASHES` are enough.
    """
    if seed is None:
        return never
    dice, left = Dice(seed), iter(range(CRASHES))

    def point(when: str, step: str) -> None:
        if dice.one_in(24) and next(left, None) is not None:
            raise Crashed(copies_lost=dice.one_in(3))

    return point


def crash_at(number: int) -> tuple[Point, list[str]]:
    """Return what ends a run at one point, once, and the list of the points that were passed."""
    passed: list[str] = []

    def point(when: str, step: str) -> None:
        passed.append(f"{when} {step}")
        if len(passed) == number:
            raise Crashed(copies_lost=number % 2 == 0)

    return point, passed


def seen_by_engine(
    scenario: Scenario, said: Interpreted, how: How = How(), point: Point | None = None
) -> Seen:
    """Run the batches of the oracle through the local executor."""
    spec = pipeline_from_mapping(to_mapping(scenario), Location("<random>"))
    topics = scenario.pipeline.topics
    schemas = {
        name: tuple(Column(column, kind) for column, kind in topic.columns.items())
        for name, topic in topics.items()
    }
    plan = build_plan(spec, Config(), schemas).plan
    joining = sorted(chain.number for chain in chains(plan) if not chain.tables)
    pipeline = LocalPipeline(
        plan,
        {name: range(topic.partitions) for name, topic in topics.items()},
        spread=how.spread,
        replay=how.replay,
        point=point or crashes(how.crashes),
    )
    done: list[LocalBatch] = []
    stops = False
    try:
        for batch in said.batches:
            done.append(
                pipeline.end(batch.time)
                if batch.last
                else pipeline.run(_table(batch.records), batch.time)
            )
    except SourceError:
        stops = True
    ordered = _ordered(scenario)
    outputs = [batch.output.to_pylist() for batch in done]
    return Seen(
        rows=tuple(_rows(output, ordered) for output in outputs),
        dead_letters=tuple(_dead_letters(output) for output in outputs),
        counters={name: pipeline.counters[name] for name in COUNTED},
        watermarks=tuple(
            _watermarks(batch, marks, joining)
            for batch, marks in zip(
                said.batches, [{}, *(each.watermarks for each in done)], strict=False
            )
        )[: len(done)],
        stops=stops,
    )


def _ordered(scenario: Scenario) -> frozenset[str]:
    """The topics whose rows have keys, and those of them whose rows may lack one, with `?`."""
    writes = scenario.pipeline.writes
    keyed = (w for w in writes if not w.groups or not w.groups[-1].distinct)
    own = (w.topic for w in writes if w.key is None and not w.groups)
    return frozenset([*(write.topic for write in keyed), *(f"{topic}?" for topic in own)])


def _rows(output: list[dict], ordered: frozenset[str]) -> Mapping[str, list[tuple[str, int]]]:
    by_key: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for row in output:
        if row["kind"] == _ROW:
            pairs = [(h["key"], h["value"]) for h in row["headers"] or ()]
            headers = [(name, None if value is None else value.decode()) for name, value in pairs]
            value = _shown(row["value"] and json.loads(row["value"]), headers)
            key = "None" if row["key"] is None else row["key"].decode()
            by_key[f"{row['topic']} {key}"].append((value, row["timestamp"]))
    return _in_order(by_key, ordered)


def _in_order(
    by_key: Mapping[str, list[tuple[str, int]]], ordered: frozenset[str]
) -> Mapping[str, list[tuple[str, int]]]:
    """Rows of one key have an order; rows without a key have none."""
    found: dict[str, list[tuple[str, int]]] = {}
    for place, rows in by_key.items():
        topic, _, key = place.partition(" ")
        lacks = key == "None" and f"{topic}?" in ordered
        found[place] = rows if topic in ordered and not lacks else sorted(rows)
    return found


def _finite(watermark: float | None) -> int | None:
    return None if watermark is None or watermark == inf else int(watermark)


def _watermarks(
    batch: Batch, marks: Mapping[int, int], numbers: Sequence[int]
) -> tuple[int | None, ...]:
    return tuple(None if batch.last else marks.get(number) for number in numbers)


def _dead_letters(output: list[dict]) -> list[Letter]:
    found: list[Letter] = []
    for row in output:
        if row["kind"] != _ROW:
            place = {each["key"]: (each["value"] or b"").decode() for each in row["headers"]}
            found.append(
                (
                    place["kaflow.topic"],
                    int(place["kaflow.partition"]),
                    int(place["kaflow.offset"]),
                    place["kaflow.phase"],
                    place.get("kaflow.chain", ""),
                    row["value"] or b"",
                )
            )
    return sorted(found)


def _table(records: tuple[Record, ...]) -> pa.Table:
    rows = [
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.ts,
            "key": None if record.key is None else record.key.encode(),
            "value": _original(record),
            "headers": [
                {"key": name, "value": None if value is None else value.encode()}
                for name, value in record.headers.items()
            ]
            or None,
        }
        for record in sorted(records, key=lambda r: (r.topic, r.partition, r.offset))
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)


def _original(record: Record) -> bytes | None:
    if record.raw is not None or record.value is None:
        return record.raw
    return json.dumps(record.value).encode()


def _shown(value: object, headers: Sequence[tuple[str, str | None]]) -> str:
    return _json([value, list(map(list, headers))] if headers else value)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)

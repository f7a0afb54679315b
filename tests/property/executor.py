"""Runs a scenario through the engine's local executor."""

# pyright: basic

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from kaflow_engine.errors import Location
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.loader import pipeline_from_mapping
from kaflow_engine.operators.schemas import RECORDS
from kaflow_engine.plan.build import build_plan
from kaflow_engine.testing.local import LocalBatch, LocalPipeline
from tests.property.render import to_mapping
from tests.property.scenario import Interpreted, Scenario
from tests.property.strategies import default_ttl
from tests.reference.interpreter import CLASSES
from tests.reference.records import Record

COUNTED = (
    "read",
    "late",
    *CLASSES,
    "null_key",
    "tombstones_ignored",
    "skipped_side",
    "side_dead_letters",
)
_ROW = 0


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What can be compared: of each batch the rows by key, in order, and its dead letters."""

    rows: tuple[Mapping[str, list[tuple[str, int]]], ...]
    dead_letters: tuple[list[tuple[str, int, int, str]], ...]
    counters: Mapping[str, int]


def seen_by_oracle(said: Interpreted) -> Seen:
    """Bring the oracle's results into comparable form."""
    rows: list[Mapping[str, list[tuple[str, int]]]] = []
    for result in said.results:
        by_key: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for row in result.rows:
            by_key[str(row.key)].append((_json(row.value), row.timestamp))
        rows.append(dict(by_key))
    return Seen(
        rows=tuple(rows),
        dead_letters=tuple(
            sorted((x.topic, x.partition, x.offset, x.phase) for x in result.dead_letters)
            for result in said.results
        ),
        counters={name: said.counters[name] for name in COUNTED},
    )


def seen_by_engine(
    scenario: Scenario, said: Interpreted, *, spread: bool = False, replay: bool = False
) -> Seen:
    """Run the batches of the oracle through the local executor."""
    mapping = to_mapping(scenario.pipeline, default_ttl(scenario))
    spec = pipeline_from_mapping(mapping, Location("<random>"))
    topics = scenario.pipeline.topics
    schemas = {
        name: tuple(Column(column, kind) for column, kind in topic.columns.items())
        for name, topic in topics.items()
    }
    pipeline = LocalPipeline(
        build_plan(spec, Config(), schemas).plan,
        {name: range(topic.partitions) for name, topic in topics.items()},
        spread=spread,
        replay=replay,
    )
    done: list[LocalBatch] = [
        pipeline.end(batch.time) if batch.last else pipeline.run(_table(batch.records), batch.time)
        for batch in said.batches
    ]
    outputs = [batch.output.to_pylist() for batch in done]
    return Seen(
        rows=tuple(_rows(output) for output in outputs),
        dead_letters=tuple(_dead_letters(output) for output in outputs),
        counters={name: pipeline.counters[name] for name in COUNTED},
    )


def _rows(output: list[dict]) -> dict[str, list[tuple[str, int]]]:
    by_key: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for row in output:
        if row["kind"] == _ROW:
            value = _json(json.loads(row["value"]))
            by_key[row["key"].decode()].append((value, row["timestamp"]))
    return dict(by_key)


def _dead_letters(output: list[dict]) -> list[tuple[str, int, int, str]]:
    found: list[tuple[str, int, int, str]] = []
    for row in output:
        if row["kind"] != _ROW:
            place = {header["key"]: header["value"].decode() for header in row["headers"]}
            found.append(
                (
                    place["kaflow.topic"],
                    int(place["kaflow.partition"]),
                    int(place["kaflow.offset"]),
                    place["kaflow.phase"],
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
            "value": record.raw
            if record.raw is not None or record.value is None
            else json.dumps(record.value).encode(),
            "headers": None,
        }
        for record in sorted(records, key=lambda r: (r.topic, r.partition, r.offset))
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)

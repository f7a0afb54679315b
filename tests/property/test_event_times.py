"""Readings of one topic by several event times are as topics with equal records, each by its own.

The engine is compared with itself, and with the reference interpreter where that can read the
queries: a pipeline over readings of one topic gives the rows, dead letters, counts and watermarks
of one in which each event time has a topic, in any batches, with replays, crashes and many tasks.
Times of different columns differ, so that no order is left to the names of topics.
"""

# pyright: basic

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.property.dice import Dice
from tests.property.executor import How, _dead_letters, _rows, _table, crashes
from tests.property.seeds import blocks, many
from tests.reference.case import run_case
from tests.reference.records import Batch, Record
from tests.reference.unions import NotExpressible

pytestmark = pytest.mark.slow

FAST, MANY = 6, 14
START = 1_767_225_600_000
SCHEMA = {"id": "VARCHAR", "k": "VARCHAR", "v": "INTEGER", "a": "BIGINT", "b": "BIGINT"}
EVENTS = {"t": None, "by_a": "a", "by_b": "b", "again": "b"}
TABLES = {"latest": None, "latest_a": "a", "latest_b": "b"}
"""Ways to read the topic, each with its event time; None: as of the topic."""
ONE = (
    "SELECT id, v FROM {x}",
    "SELECT id, v FROM {x} WHERE v > 2",
    "SELECT k, epoch_ms(window_start) AS since, count(*) AS n FROM {x} "
    "GROUP BY k, tumble(INTERVAL 10 SECOND)",
    "SELECT k, epoch_ms(window_start) AS since, sum(v) AS s FROM {x} WHERE v < 8 "
    "GROUP BY k, session(INTERVAL 3 SECOND)",
    "SELECT k, count(*) AS n, sum(v) AS s FROM {x} GROUP BY k",
)
TWO = "SELECT x.id, x.v, y.v AS w FROM {x} x {kind} JOIN {y} y ON x.k = y.k"
LOOK_UP = "SELECT x.id, x.v, y.v AS w FROM {x} x LEFT JOIN {y} y ON x.k = y.id"
OF_TABLE = ("SELECT id, k, v FROM {x}", "SELECT k, count(*) AS n FROM {x} GROUP BY k")
OF_TABLES = "SELECT x.id, x.v, y.v AS w FROM {x} x LEFT JOIN {y} y ON x.k = y.id"
CLASSES = ("used", "emitted", "dead_letter", "waiting", "filtered", "expired", "skipped")


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a pipeline made of batches."""

    rows: list[dict[str, list[tuple[str, int]]]]
    letters: list[list[tuple[int, int, str]]]
    """Partition, offset and phase of each record that is bad, once."""
    chains: list[str]
    """What dead letters say that they are about."""
    counters: Counter[str]
    watermarks: list[dict[int, int]]


def outputs(dice: Dice) -> Iterator[dict[str, Any]]:
    """Choose what is written."""
    for number in range(dice.number(1, 3)):
        topic = f"out{number}"
        what = dice.pick(["one", "one", "two", "look up", "table", "tables"])
        x, y = dice.pick(list(EVENTS)), dice.pick(list(TABLES))
        if what == "one":
            sql = dice.pick(ONE).format(x=x)
            key = {"key": "k" if "GROUP" in sql else "id"}
            changes = {"coalesce": "none"} if "sum(v) AS s" in sql and "since" not in sql else {}
            yield {"query": sql, "topic": topic, **key, **changes}
        elif what == "two":
            other = dice.pick([name for name in EVENTS if EVENTS[name] != EVENTS[x]])
            sql = TWO.format(x=x, y=other, kind=dice.pick(["", "LEFT"]))
            yield {"query": sql, "topic": topic, "key": "id"}
        elif what == "look up":
            y = dice.pick([name for name in TABLES if TABLES[name] != EVENTS[x]])
            yield {"query": LOOK_UP.format(x=x, y=y), "topic": topic, "key": "id"}
        elif what == "table":
            sql = dice.pick(OF_TABLE).format(x=y)
            yield {"query": sql, "topic": topic, "coalesce": "none"}
        else:
            other = dice.pick([name for name in TABLES if TABLES[name] != TABLES[y]])
            sql = OF_TABLES.format(x=y, y=other)
            yield {"query": sql, "topic": topic, "coalesce": "none"}


def names_in(chosen: Sequence[dict[str, Any]]) -> list[str]:
    """Return the ways in which queries read the topic."""
    words = {word for output in chosen for word in output["query"].split()}
    return [name for name in (*EVENTS, *TABLES) if name in words]


def topic_of(name: str) -> str:
    """Return the topic of a reading where each event time has one."""
    time = EVENTS.get(name) or TABLES.get(name)
    return f"of_{time}" if time else "t"


def reading(name: str, topic: str) -> dict[str, Any]:
    """Return what the file says of a way to read a topic; it says the time where all have one."""
    found: dict[str, Any] = {"topic": topic}
    if topic == "t" and (time := EVENTS.get(name) or TABLES.get(name)):
        found["event_time"] = time
    return found | ({"table": True, "primary_key": ["id"]} if name in TABLES else {})


def pipeline(chosen: list[dict[str, Any]], said: dict[str, Any], *, apart: bool) -> dict[str, Any]:
    """Write the pipeline over one topic, or over one for each event time."""
    topics = {name: topic_of(name) if apart else "t" for name in names_in(chosen)}
    times = {"of_a": {"event_time": "a"}, "of_b": {"event_time": "b"}, "t": {}}
    return {
        "name": "times",
        "outputs": chosen,
        "partitions": 2,
        "relations": {n: reading(n, topic) for n, topic in topics.items() if n != "t"},
        "topics": {topic: {**said, **times[topic]} for topic in topics.values()},
    }


def records(dice: Dice, count: int, *, nulls: bool) -> list[Record]:
    """Draw records, some without one of their times."""
    found: list[Record] = []
    offsets = Counter[int]()
    for n in range(count):
        partition = dice.number(0, 1)
        value: dict[str, Any] = {
            "id": dice.pick(["p", "q", "r", "s"]),
            "k": dice.pick(["p", "q", "x"]),
            "v": dice.number(0, 9),
        }
        for shift, name in enumerate(("a", "b"), 1):
            if not dice.one_in(7):
                value[name] = START + 3 * (700 * n + dice.number(-2000, 2000)) + shift
            elif dice.one_in(3):
                value[name] = START + 5 * 86_400_000
        found.append(
            Record(
                topic="t",
                partition=partition,
                offset=offsets[partition],
                ts=START + 3 * 700 * n,
                key=value["id"],
                value=None if nulls and dice.one_in(12) else value,
            )
        )
        if dice.one_in(15):
            found[-1] = replace(found[-1], value=None, raw=b"{")
        offsets[partition] += 1
    return found


def cut(dice: Dice, given: list[Record], most: int) -> list[Batch]:
    """Cut records into batches."""
    found: list[Batch] = []
    rest = list(given)
    while rest:
        size = dice.number(1, most)
        found.append(Batch(time=max(r.ts for r in rest[:size]), records=tuple(rest[:size])))
        rest = rest[size:]
    return [*found, Batch(time=found[-1].time)]


def run(author: dict[str, Any], batches: Sequence[Batch], copies: list[str], how: How) -> Ran:
    """Run the engine over a topic, or copies of it."""
    spec = pipeline_from_mapping(author, Location("<random>"))
    schema = tuple(Column(name, kind) for name, kind in SCHEMA.items())
    plan = build_plan(spec, Config(), {name: schema for name in copies}).plan
    engine = LocalPipeline(
        plan,
        {name: range(2) for name in copies},
        spread=how.spread,
        replay=how.replay,
        point=crashes(how.crashes),
    )
    made = Ran(rows=[], letters=[], chains=[], counters=Counter(), watermarks=[])
    keyed = frozenset(o["topic"] for o in author["outputs"])
    for batch in batches:
        here = tuple(replace(r, topic=name) for r in batch.records for name in copies)
        done = engine.run(_table(here), batch.time)
        found = done.output.to_pylist()
        made.rows.append(dict(_rows(found, keyed)))
        letters = _dead_letters(found)
        made.letters.append(sorted({(p, o, phase) for _, p, o, phase, _, _ in letters}))
        made.chains.extend(chain for *_, chain, _ in letters)
        made.watermarks.append(dict(done.watermarks))
    made.counters.update(engine.counters)
    return made


def check(seed: int) -> str | None:
    """Compare both, and the oracle; return why it cannot read them."""
    dice = Dice(f"event times {seed}")
    chosen = list(outputs(dice))
    said: dict[str, Any] = {"lateness": dice.pick(["0s", "3s", "20s"]), "max_future": "1d"}
    together = pipeline(chosen, said, apart=False)
    # a null value has one time: it changes both sides of a join of tables at once
    joined = any(f"FROM {name} x LEFT" in o["query"] for name in TABLES for o in chosen)
    given = records(dice, dice.number(1, 30), nulls=not joined)
    batches = cut(dice, given, dice.pick([1, 4, 30]))
    found = run(together, batches, ["t"], How.of(f"event times {seed}"))
    copies = sorted({topic_of(name) for name in names_in(chosen)})
    apart = run(pipeline(chosen, said, apart=True), batches, copies, How())
    about = f"seed {seed}: {json.dumps(together)}"
    assert found.rows == apart.rows, about
    assert found.letters == apart.letters, about
    assert found.watermarks == apart.watermarks, about
    counts = found.counters
    assert counts["read"] == sum(counts[name] for name in CLASSES), about
    if not joined:
        same = ("read", "late", "late_rows", *CLASSES)
        assert [counts[n] for n in same] == [apart.counters[n] for n in same], about
    return against_oracle(together, batches, found, about)


def against_oracle(
    author: dict[str, Any], batches: Sequence[Batch], found: Ran, about: str
) -> str | None:
    """Compare with the reference interpreter; return why it cannot read the queries."""
    items: list[Any] = []
    for batch in batches:
        items += [
            {
                "topic": "t",
                "partition": r.partition,
                "at": r.ts,
                "key": r.key,
                **({"raw": r.raw.decode()} if r.raw else {"value": r.value}),
            }
            for r in batch.records
        ]
        items.append("batch")
    items[-1] = {"advance": "0s"}
    case = {"pipeline": author, "topics": {"t": SCHEMA}, "given": items}
    try:
        ran = run_case(case, Path())
    except NotExpressible as why:
        return str(why)
    rows: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for row in (row for result in ran.results for row in result.rows):
        value = json.dumps(row.value, sort_keys=True)
        rows[f"{row.topic} {row.key}"].append((value, row.timestamp))
    own: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for each in found.rows:
        for key, some in each.items():
            own[key] += some
    assert own == rows, about
    letters = {(x.partition, x.offset, x.phase) for x in ran.dead_letters}
    assert letters == {each for some in found.letters for each in some}, about
    return None


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_equals_topics_apart(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_equal_topics_apart(seeds: range) -> None:
    for seed in seeds:
        check(seed)

"""Random runs: a pipeline, records for it, and cuts into batches, all from one seed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.property.dice import Dice
from tests.property.groups import with_groups
from tests.property.headers import with_headers
from tests.property.lists import with_lists
from tests.property.pipelines import AT, SECONDS, random_pipeline, random_writing
from tests.property.scenario import Item, Scenario
from tests.property.several_rows import with_tables
from tests.reference.pipeline import OraclePipeline, Topic
from tests.reference.records import Record

T0 = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""

_KEYS = ["u1"] * 6 + ["u2"] * 3 + ["U1", "u3", None]
_IDS = ["i1", "i1", "i2", "i2", "i3", "i3", "i4", "i4", "i5", "i6", None]
_AT = [0, 0, 0, 1, 1, 2, 3, 5, 8, 12, -1, -4, -10, -30]
_BATCHES = [1, 2, 2, 2, 3, 3, 3, 4, 5]
MOST_OUTPUTS = 60
"""Products of several event sides may have thousands of rows, which show no more than these do."""
_RECORDS = [1, 2, 3, 3, 4, 4, 5, 6, 8]


def random_scenario(seed: int) -> Scenario:
    """Make the scenario of a seed: a handful of batches of a handful of records."""
    scenario = _scenario(Dice(seed))
    again = 0
    alone = Dice(f"alone {seed}").one_in(5)
    while (alone and _joins(scenario)) or _outputs(scenario) > MOST_OUTPUTS:
        again += 1
        scenario = _scenario(Dice(f"{seed} {again}"))
    if Dice(f"tables {seed}").one_in(3):
        scenario = replace(scenario, writing=replace(scenario.writing, tables=True))
    if Dice(f"rows {seed}").one_in(2):
        as_tables = with_tables(Dice(f"keys {seed}"), scenario)
        scenario = as_tables if _outputs(as_tables) <= MOST_OUTPUTS else scenario
    scenario = with_lists(Dice(f"lists {seed}"), scenario)
    scenario = with_groups(Dice(f"groups {seed}"), scenario, always=alone)
    return with_headers(Dice(f"headers {seed}"), scenario)


def _joins(scenario: Scenario) -> bool:
    return any(chain.joins for chain in scenario.pipeline.chains)


def _outputs(scenario: Scenario) -> int:
    said = scenario.interpret()
    return len(said.rows) + len(said.dead_letters)


def _scenario(dice: Dice) -> Scenario:
    pipeline = random_pipeline(dice)
    writing = random_writing(dice, pipeline)
    names = sorted(pipeline.topics)
    partitions = {name: dice.pick([1, 1, 2, 3]) for name in names}
    items: list[Item] = []
    now = 0
    for place in range(dice.pick(_BATCHES)):
        if place and dice.one_in(4):
            step = dice.pick([5, 20, 1, 60])
            items.append(step * SECONDS)
            now += step
        count = dice.pick(_RECORDS)
        items.append(tuple(_record(dice, pipeline, now, partitions) for _ in range(count)))
        now += dice.pick([3, 0, 12, 35])
    if dice.one_in(6):
        items.append(dice.pick([5, 20, 60]) * SECONDS)
    scenario = Scenario(
        pipeline=pipeline,
        writing=writing,
        items=(),
        start=dice.pick([None, None, T0 + 10 * SECONDS]),
        bounded=dice.one_in(5),
    )
    return with_items(scenario, items)


def with_items(scenario: Scenario, items: Sequence[Item]) -> Scenario:
    """Return a scenario with other records, numbered, and no empty batches.

    Every topic gets as many partitions as its records need, as a case file does.
    """
    offsets: Counter[tuple[str, int]] = Counter()
    made: list[Item] = []
    for item in items:
        if isinstance(item, int):
            made.append(item)
            continue
        records: list[Record] = []
        for record in item:
            place = (record.topic, record.partition)
            records.append(replace(record, offset=offsets[place]))
            offsets[place] += 1
        if records:
            made.append(tuple(records))
    topics = {
        name: replace(topic, partitions=1 + max((p for t, p in offsets if t == name), default=0))
        for name, topic in scenario.pipeline.topics.items()
    }
    return replace(scenario, items=tuple(made), pipeline=replace(scenario.pipeline, topics=topics))


def _record(dice: Dice, pipeline: OraclePipeline, now: int, partitions: dict[str, int]) -> Record:
    sides = [join.topic for chain in pipeline.chains for join in chain.joins]
    driving = [chain.driving_topic for chain in pipeline.chains]
    topic = pipeline.topics[dice.pick([*driving, *driving, *sides])]
    kind = dice.pick(["value"] * 22 + ["null", "null", "raw"])
    if topic.dimension and kind == "value" and dice.one_in(6):
        kind = "null"
    at = max(0, now + dice.pick(_AT))
    return Record(
        topic=topic.name,
        partition=dice.number(0, partitions[topic.name] - 1),
        offset=-1,
        ts=T0 + at * SECONDS,
        key=dice.pick(["u1", "u1", "u1", "u2", "1", "2", None]),
        value=_value(dice, topic, at) if kind == "value" else None,
        raw=dice.pick([b'{"id": ', b"[1]", b"\xff", b""]) if kind == "raw" else None,
    )


def _value(dice: Dice, topic: Topic, at: int) -> dict[str, Any]:
    value: dict[str, Any] = {
        "id": dice.pick(_IDS),
        "k": dice.pick(_KEYS),
        "m": dice.pick(_KEYS),
        "n": "many" if dice.one_in(40) else dice.pick([1, 1, 1, 2, 3, None]),
        "s": dice.pick(["x", "x", "y", "zz", "7", None]),
    }
    if topic.event_time is not None:
        moved = dice.pick([0, 0, 0, 0, 1, -2, -20, 33, None])
        value[AT] = None if moved is None else T0 + (at + moved) * SECONDS
    if dice.one_in(5):
        return {name: each for name, each in value.items() if each is not None}
    return value

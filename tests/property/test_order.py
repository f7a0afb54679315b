"""The rows of a delivery partition have one order, however many tasks form them.

What was delivered of a batch in part is passed over by its number when the batch runs again, maybe
in more tasks or fewer, and with rows that arrive from other tasks in another order.
"""

# pyright: basic

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kaflow_engine.errors import Location, SourceError
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local import executor as local
from tests.property.executor import _table
from tests.property.render import to_mapping
from tests.property.scenario import Interpreted, Scenario
from tests.property.strategies import random_scenario

pytestmark = pytest.mark.slow

FEW, MANY = range(0, 10), range(10, 30)
Slots = dict[int, list[tuple[object, ...]]]


def slots_of(output: pa.Table) -> Slots:
    """Return what a marker counts, in its order."""
    found: Slots = {}
    for row in output.select(["slot", "topic", "key", "value", "timestamp", "kind"]).to_pylist():
        slot, *rest = row.values()
        found.setdefault(slot, []).append(tuple(rest))
    return found


def delivered(scenario: Scenario, said: Interpreted, spread: bool) -> list[Slots]:
    """Run all batches, in one task or in one for each partition."""
    spec = pipeline_from_mapping(to_mapping(scenario), Location("<random>"))
    topics = scenario.pipeline.topics
    schemas = {
        name: tuple(Column(column, kind) for column, kind in topic.columns.items())
        for name, topic in topics.items()
    }
    plan = build_plan(spec, Config(), schemas).plan
    partitions = {name: range(topic.partitions) for name, topic in topics.items()}
    pipeline = local.LocalPipeline(plan, partitions, spread=spread)
    found: list[Slots] = []
    try:
        for batch in said.batches:
            done = (
                pipeline.end(batch.time)
                if batch.last
                else pipeline.run(_table(batch.records), batch.time)
            )
            found.append(slots_of(done.output))
    except SourceError:  # a bad record that the scenario wants to stop at
        return found
    return found


def in_any_order(chance: random.Random):
    """Return a way to send rows to tasks in which they arrive as it happens."""

    def by_part(rows: pa.Table, parts: range) -> list[tuple[int, pa.Table]]:
        places = chance.sample(range(rows.num_rows), rows.num_rows)
        mixed = rows.take(pa.array(places, pa.int64()))
        return [(part, mixed.filter(pc.equal(mixed["part"], part))) for part in parts]

    return by_part


def check(seeds: range, monkeypatch: pytest.MonkeyPatch) -> int:
    rows = 0
    for seed in seeds:
        scenario = random_scenario(seed)
        said = scenario.interpret()
        alone = delivered(scenario, said, spread=False)
        with monkeypatch.context() as patched:
            patched.setattr(local, "_by_part", in_any_order(random.Random(seed)))
            assert delivered(scenario, said, spread=True) == alone, seed
        rows += sum(len(found) for batch in alone for found in batch.values())
    return rows


def test_the_order_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(FEW, monkeypatch) > 40


@pytest.mark.property
def test_the_order_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(MANY, monkeypatch) > 60

"""A crash at any one point of the protocol changes nothing: each in turn."""

# pyright: basic

from dataclasses import replace

import pytest

from kaflow_engine.testing.local.world import Protocol
from tests.property.check import compare
from tests.property.executor import How, crash_at, seen_by_engine, seen_by_oracle
from tests.property.scenario import Scenario
from tests.property.strategies import T0, with_items
from tests.reference.conditions import Column
from tests.reference.pipeline import Chain, Join, OraclePipeline, Output, Topic, Write
from tests.reference.records import Record

STEPS: tuple[Protocol, ...] = (
    "batch_logged",
    "changes_applied",
    "changes_written",
    "delivered",
    "committed",
)


def _scenario() -> Scenario:
    """An event that is joined at once, and one that waits for its profile in the next batch.

    Both go to two outputs, one with a key and one without.
    """
    columns = {"id": "VARCHAR", "k": "VARCHAR"}
    users = Topic(name="users", columns=columns, dimension=True)
    chain = Chain(
        driving="d",
        driving_topic="orders",
        joins=(Join(alias="u", topic="users", on=((Column("d", "k"), Column("u", "k")),)),),
    )
    pipeline = OraclePipeline(
        topics={"orders": Topic(name="orders", columns=columns), "users": users},
        writes=(
            Write(
                chain=chain,
                select=(
                    Output(name="id", term=Column("d", "id")),
                    Output(name="user", term=Column("u", "id")),
                ),
                key="id",
            ),
            Write(
                topic="users-seen",
                chain=chain,
                select=(Output(name="user", term=Column("u", "id")),),
            ),
        ),
        emission="smart",
        require=("user",),
    )
    batches = [
        (_record("users", "u", "u1"), _record("orders", "e", "u1"), _record("orders", "f", "u2")),
        (_record("users", "v", "u2"), replace(_record("orders", "e", "u1"), raw=b"{", value=None)),
    ]
    return with_items(Scenario(pipeline=pipeline, items=()), batches)


def _record(topic: str, id: str, k: str) -> Record:
    return Record(topic=topic, offset=0, ts=T0, key=k, value={"id": id, "k": k})


@pytest.mark.slow
@pytest.mark.parametrize("spread", [False, True], ids=["one task", "several tasks"])
def test_a_crash_at_each_point(spread: bool) -> None:
    scenario, how = _scenario(), How(spread=spread)
    said = scenario.interpret()
    expected = seen_by_oracle(scenario, said)
    assert [len(rows) for rows in expected.rows] == [2, 2]
    point, passed = crash_at(0)
    assert compare(expected, seen_by_engine(scenario, said, how, point)) is None
    assert set(passed) == {f"{when} {step}" for when in ("before", "after") for step in STEPS}
    for number in range(1, len(passed) + 1):
        point, _ = crash_at(number)
        found = compare(expected, seen_by_engine(scenario, said, how, point))
        assert found is None, f"{passed[number - 1]}, point {number} of {len(passed)}: {found}"

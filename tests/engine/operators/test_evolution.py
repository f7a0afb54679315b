"""Batches under one plan, and then under another that goes on with its state."""
# pyright: basic

import json
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.operators.inspect.state_rows import decode
from kaflow_engine.operators.inspect.state_sides import state_sides
from kaflow_engine.plan.evolution.diff import obstacles
from kaflow_engine.plan.evolution.evolution import inherit
from kaflow_engine.runtime.planning.plan_codec import plan_of as read_plan
from kaflow_engine.runtime.planning.plan_codec import plan_text
from kaflow_engine.state.keys import entry_key
from kaflow_engine.testing.local.executor import LocalPipeline, never
from kaflow_engine.testing.local.world import Crashed
from tests.engine.plan.evolution import Change, load_fixture, plan_of

pytestmark = pytest.mark.slow

START = 1_767_225_600_000
Batch = list[dict[str, dict[str, object]]]
"""Records, each with the name of its topic."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Batches before and after a change, and the rows that come after it."""

    title: str
    query: str | None
    then: str | None
    before: dict[str, object] = field(default_factory=dict)
    after: dict[str, object] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    given: list[Batch]
    given_then: list[Batch]
    rows: list[dict[str, object]]


TIER = "SELECT e.id, d.name, d.tier FROM events e LEFT JOIN names d ON e.id = d.id"
PLAIN = TIER.replace(", d.tier", "")
CASES = [Case(**entry) for entry in load_fixture("rows.yaml")]
NAMES = [case.title for case in CASES]


class Feed:
    """Feeds a pipeline under one plan and then under another."""

    def __init__(self, case: Case, *, spread: bool = False) -> None:
        self.case = case
        self.old, self.new = self._plan(case.query, {}, {}), None
        later = self._plan(case.then, case.after, case.columns)
        assert obstacles(self.old, later) == ()
        self.new = read_plan(plan_text(inherit(self.old, later)))
        topics = {topic.name: [0] for plan in (self.old, self.new) for topic in plan.sources}
        self.offsets = dict.fromkeys(topics, 0)
        self.time = START
        self.pipeline = LocalPipeline(
            self.old, topics, spread=spread, replay=True, point=self.point
        )
        self.point_of_change = never

    def _plan(self, query: str, more: dict, columns: dict) -> Flow:
        change = Change(
            title="",
            query=query,
            before=self.case.before,
            after=more,
            columns=columns,
        )
        return plan_of(change, after=True)

    def point(self, when: str, step: str) -> None:
        self.point_of_change(when, step)

    def feed(self, records: Batch) -> list[dict[str, object]]:
        rows = []
        for topic, value in (pair for record in records for pair in record.items()):
            self.time += 1000 + 60_000 * int(str(value.get("minutes", 0)))
            if topic == "advance":
                continue
            row = {"topic": topic, "partition": 0, "offset": self.offsets[topic], "headers": []}
            key = str(value["id"]).encode()
            value_bytes = None if "gone" in value else json.dumps(value).encode()
            rows.append(row | {"timestamp": self.time, "key": key, "value": value_bytes})
            self.offsets[topic] += 1
        table = pa.Table.from_pylist(rows, schema=RECORDS)
        done = self.pipeline.run(table, self.time)
        return [_shown(row) for row in done.output.to_pylist() if row["kind"] == 0]


def _shown(row: dict) -> dict[str, object]:
    """Return a value, or the key of what is deleted, by the name of its topic."""
    if row["value"] is None:
        return {row["topic"]: row["key"].decode()}
    return json.loads(row["value"])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_rows_after_a_change(case: Case) -> None:
    feed = Feed(case, spread=True)
    for records in case.given:
        feed.feed(records)
    feed.pipeline.go_on(feed.new)
    found = [row for records in case.given_then for row in feed.feed(records)]
    assert sorted(map(str, found)) == sorted(map(str, case.rows))


PLACES = ("before delivered", "after delivered", "after changes_written", "after batch_logged")


@pytest.mark.parametrize(
    ("case", "place"),
    [(case, PLACES[n % len(PLACES)]) for n, case in enumerate(CASES)],
    ids=NAMES,
)
def test_a_batch_that_was_open_is_run_with_its_own_plan(case: Case, place: str) -> None:
    """The last batch before the change is left open, and the new plan comes before it is done."""
    feed, peace = Feed(case), Feed(case)
    expected = [peace.feed(records) for records in case.given]
    assert [feed.feed(records) for records in case.given[:-1]] == expected[:-1]
    crashed = []

    def crash(when: str, step: str) -> None:
        if f"{when} {step}" == place and not crashed:
            crashed.append(step)
            feed.pipeline.go_on(feed.new)
            raise Crashed(copies_lost=True)

    feed.point_of_change = crash
    again = feed.feed(case.given[-1])
    assert sorted(map(str, again)) == sorted(map(str, expected[-1]))
    feed.pipeline.go_on(feed.new)
    found = [row for records in case.given_then for row in feed.feed(records)]
    assert sorted(map(str, found)) == sorted(map(str, case.rows))


def test_a_change_after_a_change() -> None:
    """What was removed and comes back is NULL where it was stored before; nothing is mixed up."""
    first = Case(title="", query=TIER, then=PLAIN, given=[], given_then=[], rows=[])
    feed = Feed(first)
    feed.feed([{"names": {"id": "a", "name": "Ann", "tier": "gold"}}])
    feed.pipeline.go_on(feed.new)
    feed.feed([{"names": {"id": "b", "name": "Bob", "tier": "blue"}}])
    back = inherit(feed.new, feed.old)
    assert back != feed.old
    feed.pipeline.go_on(back)
    feed.feed([{"names": {"id": "c", "name": "Cid", "tier": "grey"}}])
    found = feed.feed([{"events": {"id": key}} for key in "abc"])
    assert [(row["name"], row["tier"]) for row in found] == [
        ("Ann", None),
        ("Bob", None),
        ("Cid", "grey"),
    ]


def test_the_place_of_a_column_that_was_removed_is_not_shown() -> None:
    case = Case(
        title="", query=TIER, then=TIER.replace("d.name, ", ""), given=[], given_then=[], rows=[]
    )
    plan = Feed(case).new
    side = next(side for side in state_sides(plan) if side.kind == "dimension")
    value = START.to_bytes(8, "big") + b'["Ann", "gold"]'
    (row,) = decode(plan, side, [entry_key(b"\0a", side.byte)], [value]).json_rows()
    assert row["value"] == {"d.tier": "gold"}

"""Batches under one plan, and then under another that goes on with its state."""
# pyright: basic

import json
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from kaflow_engine.operators.params import Plan
from kaflow_engine.operators.schemas import RECORDS
from kaflow_engine.plan.diff import obstacles
from kaflow_engine.plan.inherit import inherit
from kaflow_engine.runtime.plans import plan_of as read_plan
from kaflow_engine.runtime.plans import plan_text
from kaflow_engine.testing.local import LocalPipeline, never
from kaflow_engine.testing.local_world import Crashed
from tests.engine.plan.evolution import ENRICH, PAIRS, SMART, Change, plan_of

START = 1_767_225_600_000
Record = tuple[str, dict[str, object]]


def event(**value: object) -> Record:
    return "events", value


def name(**value: object) -> Record:
    return "names", value


def click(**value: object) -> Record:
    return "clicks", value


@dataclass(frozen=True, kw_only=True)
class Case:
    """Batches before and after a change, and the rows that come after it."""

    title: str
    query: str
    then: str
    more: dict[str, object] = field(default_factory=dict)
    after: dict[str, object] = field(default_factory=dict)
    before: list[list[Record]]
    batches: list[list[Record]]
    rows: list[dict[str, object]]
    columns: dict[str, dict[str, str]] = field(default_factory=dict)


TIER = ENRICH.replace("d.name", "d.name, d.tier")
WIDE = ENRICH.replace("d.name", "d.name, e.n, d.tier")
TWO = (
    "SELECT e.id, d.name, c.page FROM events e LEFT JOIN names d ON e.id = d.id "
    "LEFT JOIN clicks c ON d.name = c.id"
)
CASES = [
    Case(
        title="a column of a dimension is NULL until its next record",
        query=ENRICH,
        then=TIER,
        before=[[name(id="a", name="Ann", tier="gold"), name(id="b", name="Bob", tier="blue")]],
        batches=[
            [event(id="a"), event(id="b")],
            [name(id="a", name="Ann", tier="silver")],
            [event(id="a"), event(id="b")],
        ],
        rows=[
            {"id": "a", "name": "Ann", "tier": None},
            {"id": "b", "name": "Bob", "tier": None},
            {"id": "a", "name": "Ann", "tier": "silver"},
            {"id": "b", "name": "Bob", "tier": None},
        ],
    ),
    Case(
        title="rows that wait have no value for what was added",
        query=ENRICH,
        then=WIDE,
        more=SMART,
        before=[[event(id="a", n=1)]],
        batches=[[event(id="a", n=2)], [name(id="a", name="Ann", tier="gold")]],
        rows=[
            {"id": "a", "name": "Ann", "n": None, "tier": "gold"},
            {"id": "a", "name": "Ann", "n": 2, "tier": "gold"},
        ],
    ),
    Case(
        title="a column that goes, between others",
        query=WIDE,
        then=ENRICH.replace("d.name", "d.name, e.other, d.tier"),
        more=SMART,
        before=[[event(id="a", n=1, other="x")], [name(id="b", name="Bob", tier="blue")]],
        batches=[
            [event(id="b", n=2, other="y"), event(id="a", n=3, other="z")],
            [name(id="a", name="Ann", tier="gold")],
        ],
        rows=[
            {"id": "b", "name": "Bob", "other": "y", "tier": "blue"},
            {"id": "a", "name": "Ann", "other": None, "tier": "gold"},
            {"id": "a", "name": "Ann", "other": "z", "tier": "gold"},
        ],
    ),
    Case(
        title="events of a side, and driving records that were kept",
        query=PAIRS,
        then=PAIRS.replace("c.page", "c.page, c.n AS clicked, e.n"),
        before=[[event(id="a", n=1)], [click(id="b", page="home", n=7)]],
        batches=[[click(id="a", page="cart", n=8)], [event(id="b", n=2)]],
        rows=[
            {"id": "a", "page": "cart", "clicked": 8, "n": None},
            {"id": "b", "page": "home", "clicked": None, "n": 2},
        ],
    ),
    Case(
        title="a column that became wider",
        query=PAIRS.replace("c.page", "c.n"),
        then=PAIRS.replace("c.page", "c.n"),
        columns={"clicks": {"id": "VARCHAR", "n": "BIGINT"}},
        before=[[click(id="b", n=7)]],
        batches=[[click(id="b", n=1 << 40), event(id="b")]],
        rows=[{"id": "b", "n": 7}, {"id": "b", "n": 1 << 40}],
    ),
    Case(
        title="two steps, with rows that rest in the second",
        query=TWO,
        then=TWO.replace("c.page", "c.page, e.n, d.tier, c.n AS clicked"),
        before=[
            [name(id="a", name="Ann", tier="gold"), click(id="Ann", page="home", n=1)],
            [event(id="a", n=5)],
        ],
        batches=[
            [click(id="Ann", page="cart", n=2)],
            [name(id="a", name="Ann", tier="blue"), event(id="a", n=6)],
        ],
        rows=[
            {"id": "a", "name": "Ann", "page": "cart", "n": None, "tier": None, "clicked": 2},
            {"id": "a", "name": "Ann", "page": "home", "n": 6, "tier": "blue", "clicked": None},
            {"id": "a", "name": "Ann", "page": "cart", "n": 6, "tier": "blue", "clicked": 2},
        ],
    ),
    Case(
        title="rows that wait from now on",
        query=ENRICH,
        then=ENRICH.replace("LEFT", "INNER"),
        after=SMART,
        before=[[name(id="a", name="Ann")], [event(id="a"), event(id="b")]],
        batches=[[event(id="a"), event(id="b")], [name(id="b", name="Bob")]],
        rows=[{"id": "a", "name": "Ann"}, {"id": "b", "name": "Bob"}],
    ),
    Case(
        title="another driving key",
        query=ENRICH,
        then=ENRICH.replace("ON e.id", "ON e.other"),
        before=[[name(id="a", name="Ann"), name(id="b", name="Bob")]],
        batches=[[event(id="a", other="b")]],
        rows=[{"id": "a", "name": "Bob"}],
    ),
    Case(
        title="filters of rows that wait, and of those that come",
        query=ENRICH,
        then=f"{ENRICH} WHERE e.n > 1 AND d.name <> 'Bob'",
        more=SMART,
        before=[[event(id="a", n=1), event(id="b", n=9)]],
        batches=[
            [event(id="a", n=1), event(id="a", n=3)],
            [name(id="a", name="Ann"), name(id="b", name="Bob")],
        ],
        rows=[{"id": "a", "name": "Ann"}, {"id": "a", "name": "Ann"}],
    ),
]


class Feed:
    """Feeds a pipeline under one plan and then under another."""

    def __init__(self, case: Case, *, spread: bool = False) -> None:
        self.case = case
        self.old, self.new = self._plan(case.query, {}, {}), None
        later = self._plan(case.then, case.after, case.columns)
        assert obstacles(self.old, later) == ()
        self.new = read_plan(plan_text(inherit(self.old, later)))
        topics = {topic.name: [0] for topic in self.old.topics}
        self.offsets = dict.fromkeys(topics, 0)
        self.time = START
        self.change_at = 0
        self.pipeline = LocalPipeline(
            self.old, topics, spread=spread, replay=True, point=self.point
        )
        self.point_of_change = never

    def _plan(self, query: str, more: dict, columns: dict) -> Plan:
        change = Change(
            title="",
            query=query,
            before=self.case.more,
            after=more,
            columns=columns,
            status="kept",
            reason="",
        )
        return plan_of(change, after=True)

    def point(self, when: str, step: str) -> None:
        self.point_of_change(when, step)

    def feed(self, records: list[Record]) -> list[dict[str, object]]:
        rows = []
        for topic, value in records:
            self.time += 1000
            row = {"topic": topic, "partition": 0, "offset": self.offsets[topic], "headers": []}
            key = str(value["id"]).encode()
            value_bytes = json.dumps(value).encode()
            rows.append(row | {"timestamp": self.time, "key": key, "value": value_bytes})
            self.offsets[topic] += 1
        table = pa.Table.from_pylist(rows, schema=RECORDS)
        done = self.pipeline.run(table, self.time)
        return [json.loads(row["value"]) for row in done.output.to_pylist() if row["kind"] == 0]


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_rows_after_a_change(case: Case) -> None:
    feed = Feed(case, spread=True)
    for records in case.before:
        feed.feed(records)
    feed.pipeline.go_on(feed.new)
    found = [row for records in case.batches for row in feed.feed(records)]
    assert sorted(map(str, found)) == sorted(map(str, case.rows))


PLACES = ("before delivered", "after delivered", "after changes_written", "after batch_logged")


@pytest.mark.parametrize(
    ("case", "place"),
    [(case, PLACES[n % len(PLACES)]) for n, case in enumerate(CASES)],
    ids=[case.title for case in CASES],
)
def test_a_batch_that_was_open_is_run_with_its_own_plan(case: Case, place: str) -> None:
    """The last batch before the change is left open, and the new plan comes before it is done."""
    feed, peace = Feed(case), Feed(case)
    expected = [peace.feed(records) for records in case.before]
    assert [feed.feed(records) for records in case.before[:-1]] == expected[:-1]
    crashed = []

    def crash(when: str, step: str) -> None:
        if f"{when} {step}" == place and not crashed:
            crashed.append(step)
            feed.pipeline.go_on(feed.new)
            raise Crashed(copies_lost=True)

    feed.point_of_change = crash
    again = feed.feed(case.before[-1])
    assert sorted(map(str, again)) == sorted(map(str, expected[-1]))
    feed.pipeline.go_on(feed.new)
    found = [row for records in case.batches for row in feed.feed(records)]
    assert sorted(map(str, found)) == sorted(map(str, case.rows))


def test_a_change_after_a_change() -> None:
    """What was removed and comes back is NULL where it was stored before; nothing is mixed up."""
    first = Case(
        title="", query=TIER, then=ENRICH, before=[], batches=[], rows=[], columns={}, more={}
    )
    feed = Feed(first)
    feed.feed([name(id="a", name="Ann", tier="gold")])
    feed.pipeline.go_on(feed.new)
    feed.feed([name(id="b", name="Bob", tier="blue")])
    back = inherit(feed.new, feed.old)
    assert back != feed.old
    feed.pipeline.go_on(back)
    feed.feed([name(id="c", name="Cid", tier="grey")])
    found = feed.feed([event(id="a"), event(id="b"), event(id="c")])
    assert [(row["name"], row["tier"]) for row in found] == [
        ("Ann", None),
        ("Bob", None),
        ("Cid", "grey"),
    ]

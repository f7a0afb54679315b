"""Dead letters of flows with several chains: which one they are about, and who sees them again."""

# pyright: basic

from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.connectors.kafka.dead_letters.letters import letters_of
from kaflow_engine.connectors.kafka.dead_letters.redrive import redriven_headers
from kaflow_engine.errors import Location, SourceError
from kaflow_engine.flow.records import DEAD_LETTER, RECORDS, ROW
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.operators.output.deliver import run_deliver
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import DEAD, LETTERS
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.sql.pipeline import pipeline_topics
from kaflow_engine.testing.local.executor import LocalPipeline

pytestmark = pytest.mark.slow

NOW = 1_767_225_600_000
COLUMNS = (Column("id", "VARCHAR"), Column("text", "VARCHAR"))
NUMBERS = "SELECT id, CAST(text AS INTEGER) AS v FROM orders"
DATES = "SELECT o.id, CAST(o.text AS DATE) AS v FROM orders o LEFT JOIN users u ON o.id = u.id"
SIDE = "SELECT p.id, o.text AS v FROM payments p JOIN orders o ON o.id = p.id"
IDS = "SELECT id, text AS v FROM payments"
PARTED = (
    "SELECT o.id, CAST(u.text AS INTEGER) AS v FROM orders o LEFT JOIN payments p ON o.id = p.id "
    "LEFT JOIN users u ON p.text = u.id"
)


def plan(*queries, on_error="dead_letter", **more):
    """Plan a pipeline `p` with an output `out<i>` for each query."""
    outputs = [{"query": query, "topic": f"out{i}"} for i, query in enumerate(queries)]
    raw = {
        "name": "p",
        "outputs": outputs,
        "state": {"dimensions": ["users"]} if any("users" in query for query in queries) else {},
        "topics": {"orders": {"on_error": on_error}},
        **more,
    }
    spec = pipeline_from_mapping(raw, Location("p.yaml", 1))
    return build_plan(spec, Config(), dict.fromkeys(pipeline_topics(spec), COLUMNS)).plan


def records(*given):
    """Records of a topic: its name, the value and headers."""
    rows = [
        {
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "timestamp": NOW,
            "value": value,
            "headers": [{"key": name, "value": held} for name, held in headers],
        }
        for offset, (topic, value, headers) in enumerate(given)
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)


class Running:
    """A pipeline with what it has written."""

    def __init__(self, flow, spread):
        topics = {topic.name: [0] for topic in flow.sources}
        self.pipeline = LocalPipeline(flow, topics, spread=spread, replay=True)

    def run(self, *given):
        """Return rows, as topic and value, and the dead letters of a batch."""
        output = self.pipeline.run(records(*given), NOW).output
        rows = [
            (row["topic"], row["value"].decode())
            for row in output.to_pylist()
            if row["kind"] == ROW
        ]
        dead = [row for row in output.to_pylist() if row["kind"] == DEAD_LETTER]
        held = [{**row, "partition": 0, "offset": n} for n, row in enumerate(dead)]
        found = letters_of(pa.Table.from_pylist(held)) if held else []
        assert len(found) == len(dead)
        return rows, found


@pytest.fixture(params=[False, True], ids=["one task", "several tasks"])
def running(request):
    return lambda *queries, **more: Running(plan(*queries, **more), request.param)


@pytest.mark.parametrize(
    ("queries", "value", "names"),
    [
        ((NUMBERS,), b'{"id": "a", "text": "?"}', [None]),
        ((DATES,), b'{"id": "a", "text": "?"}', [None]),
        ((NUMBERS, DATES), b'{"id": "a", "text": "?"}', ["out0", "out1"]),
        ((DATES, NUMBERS), b'{"id": "a", "text": "?"}', ["out1", "out0"]),
        ((NUMBERS, DATES), b'{"id": "a", "text": "1"}', ["out1"]),
        ((NUMBERS, DATES), b'{"id": "a", "text": "2026-01-01"}', ["out0"]),
        ((NUMBERS, DATES), b"{", [None]),
        ((NUMBERS, SIDE), b'{"id": "a", "text": "?"}', ["out0"]),
        ((IDS + " UNION ALL " + NUMBERS,), b'{"id": "a", "text": "?"}', ["out0#1"]),
        ((NUMBERS + " UNION ALL " + IDS,), b'{"id": "a", "text": "?"}', ["out0"]),
        ((NUMBERS + " UNION ALL " + NUMBERS,), b'{"id": "a", "text": "?"}', [None]),
        ((SIDE, NUMBERS + " WHERE CAST(text AS BIGINT) > 0"), b'{"id": "a", "text": "?"}', [None]),
    ],
)
def test_a_dead_letter_says_which_of_several_chains_it_is_about(running, queries, value, names):
    _, found = running(*queries).run(("orders", value, []))
    assert sorted([each.chain for each in found], key=str) == sorted(names, key=str)


def test_a_redriven_record_goes_to_the_chain_that_failed_until_it_is_right(running):
    run = running(NUMBERS, DATES, SIDE).run
    rows, (first,) = run(("orders", b'{"id": "a", "text": "2026-01-01"}', [("trace", b"1")]))
    assert rows == [("out1", '{"id":"a","v":"2026-01-01"}')]
    assert (first.chain, first.attempt, first.headers) == ("out0", 1, (("trace", b"1"),))

    again = redriven_headers(first, "p")
    assert again == [("trace", b"1"), ("kaflow.redrive", b"2:p"), ("kaflow.chain", b"out0")]
    rows, (second,) = run(("orders", b'{"id": "a", "text": "?"}', again))
    assert (rows, second.chain, second.attempt) == ([], "out0", 2)

    again = redriven_headers(second, "p")
    assert again == [("trace", b"1"), ("kaflow.redrive", b"3:p"), ("kaflow.chain", b"out0")]
    rows, (third,) = run(("orders", b"{", again))
    assert (rows, third.chain, third.phase) == ([], "out0", "decode")

    again = redriven_headers(third, "p")
    rows, found = run(("orders", b'{"id": "a", "text": "7"}', again))
    assert (rows, found) == ([("out0", '{"id":"a","v":7}')], [])
    rows, _ = run(("payments", b'{"id": "a"}', []))
    assert rows == [("out2", '{"id":"a","v":"2026-01-01"}')]


def test_the_account_adds_up_over_chains_and_redriven_records(running):
    pipeline = running(NUMBERS, DATES)
    _, found = pipeline.run(
        ("orders", b'{"id": "a", "text": "?"}', []),
        ("orders", b'{"id": "a", "text": "3"}', []),
        ("orders", b"{", []),
        ("orders", None, []),
    )
    assert len(found) == 4
    again = [redriven_headers(letter, "p") for letter in found]
    pipeline.run(*(("orders", b'{"id": "a", "text": "4"}', headers) for headers in again))
    counters = pipeline.pipeline.counters
    assert (counters["read"], counters["skipped"]) == (4 * 2 + 3 + 2, 2)
    assert (counters["emitted"], counters["dead_letter"]) == (1 + 2, 3 + 2 + 3)


@pytest.mark.parametrize("queries", [(NUMBERS, SIDE), (SIDE, DATES)])
def test_on_error_fail_stops_at_what_fails_in_one_chain(running, queries):
    pipeline = running(*queries, on_error="fail")
    with pytest.raises(SourceError, match="bad record in topic 'orders', partition 0, offset 0"):
        pipeline.run(("orders", b'{"id": "a", "text": "?"}', []))


def test_a_ledger_says_which_chain_a_dead_letter_is_about(running):
    emission = {"type": "smart", "require": ["v"], "on_expiry": "dead_letter"}
    pipeline = running(PARTED, PARTED.replace("orders", "claims"), emission=emission)
    pipeline.run(("orders", b'{"id": "a"}', []), ("claims", b'{"id": "a"}', []))
    output = pipeline.pipeline.end(NOW).output.to_pylist()
    found = [{h["key"]: h["value"] for h in row["headers"]} for row in output]
    assert [(h["kaflow.topic"], h["kaflow.chain"]) for h in found] == [
        (b"claims", b"out1"),
        (b"orders", b"out0"),
    ]


class Delivered:
    """A task that keeps what it is to deliver."""

    rows = None

    def deliver(self, rows):
        self.rows = rows


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_letters_of_one_record_leave_in_one_order(order):
    flow = plan(NUMBERS, DATES, SIDE)
    sides = [None, *(flow.operators.index(each) for each in flow.operators if "out" in each.id)][:3]
    dead = exchange_rows(
        3,
        target=LETTERS,
        part=0,
        kind=DEAD,
        side=pa.array(sides, pa.int32()),
        t_topic=0,
        t_part=0,
        t_off=7,
        payload='{"phase": "sql", "error": "e", "message": "m"}',
    )
    task: Any = Delivered()
    batch = BatchContext(batch=1, batch_time=NOW, watermarks={}, epoch=1)
    run_deliver(flow, batch, dead.take(order), task)
    headers = [{h["key"]: h["value"] for h in row} for row in task.rows["headers"].to_pylist()]
    assert [each.get("kaflow.chain") for each in headers] == [None, b"out0", b"out1"]

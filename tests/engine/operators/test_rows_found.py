"""Joins that look a table up by other columns than its key: what they keep, and what fails."""

# pyright: basic

import json

import pyarrow as pa

from kaflow_engine.errors import Location
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.operators.inspect.state_rows import decode
from kaflow_engine.operators.inspect.state_sides import describe, state_sides
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalPipeline

COLUMNS = {
    "orders": {"id": "BIGINT", "city": "VARCHAR"},
    "shops": {"nr": "DOUBLE", "city": "VARCHAR"},
}


class Running:
    """A stream of orders that looks shops up, whose key is a number."""

    def __init__(self, query: str) -> None:
        topics = {"shops": {"table": True, "primary_key": ["nr"]}}
        given = {"name": "p", "query": query, "output": {"topic": "out"}, "topics": topics}
        spec = pipeline_from_mapping({**given, "partitions": 2}, Location("p.yaml"))
        known = {t: tuple(Column(*each) for each in c.items()) for t, c in COLUMNS.items()}
        self.plan = build_plan(spec, Config(), known).plan
        self.pipeline = LocalPipeline(self.plan, dict.fromkeys(COLUMNS, range(1)), replay=True)
        self.offsets = dict.fromkeys(COLUMNS, 0)

    def batch(self, *records: tuple[str, dict | None, str | None]) -> list[object]:
        """Return the rows, and the messages of dead letters."""
        rows = []
        for topic, value, key in records:
            self.offsets[topic] += 1
            row = {"topic": topic, "partition": 0, "offset": self.offsets[topic] - 1}
            at = 1_767_225_600_000 + sum(self.offsets.values())
            data = None if value is None else json.dumps(value).encode()
            key = None if key is None else key.encode()
            rows.append({**row, "timestamp": at, "key": key, "value": data, "headers": None})
        table = pa.Table.from_pylist(rows, schema=RECORDS)
        out = self.pipeline.run(table, 1_767_225_700_000).output.to_pylist()
        return [json.loads(row["value"]) if row["kind"] == 0 else _why(row) for row in out]

    def kept(self) -> list[dict]:
        """Return the rows that the join has, as `kaflow state show` prints them."""
        side = next(each for each in state_sides(self.plan) if each.kind == "found")
        assert describe(side, self.plan) == "rows of 'shops' by a join key"
        keys, values = [], []
        for part in range(self.plan.partitions):
            found = self.pipeline._world.state((side.step, part)).range(b"\0", None)
            mine = [n for n, key in enumerate(found.keys) if key[1] == side.byte]
            keys += [found.keys[n] for n in mine]
            values += [found.values[n] for n in mine]
        return sorted(decode(self.plan, side, keys, values).json_rows(), key=str)


def _why(row: dict) -> str:
    found = {each["key"]: each["value"].decode() for each in row["headers"]}
    return f"{found['kaflow.chain']}: {found['kaflow.phase']}"


def test_a_row_is_kept_under_its_join_key() -> None:
    run = Running("SELECT o.id, s.nr FROM orders o JOIN shops s ON o.city = s.city")
    run.batch(
        ("shops", {"nr": 1, "city": "Rome"}, None),
        ("shops", {"nr": 2, "city": "Rome"}, None),
        ("shops", {"nr": 3}, None),
    )
    assert [(row["key"], row["value"]) for row in run.kept()] == [
        ("Rome", {"row": '["1.0"]', "s.nr": 1}),
        ("Rome", {"row": '["2.0"]', "s.nr": 2}),
    ]
    run.batch(("shops", {"nr": 1, "city": "Oslo"}, None), ("shops", None, "2"))
    assert [row["key"] for row in run.kept()] == ["Oslo"]
    run.batch(("shops", None, "1"), ("shops", None, "3.0"))
    assert run.kept() == []


def test_a_table_that_stands_first_does_not_drive() -> None:
    run = Running("SELECT o.id, s.nr FROM shops s JOIN orders o ON o.city = s.city")
    assert run.batch(("orders", {"id": 1, "city": "Rome"}, None)) == []
    shops = [("shops", {"nr": nr, "city": "Rome"}, None) for nr in (2, 1)]
    assert run.batch(*shops) == [{"id": 1, "nr": 2}]
    found = run.batch(("orders", {"id": 2, "city": "Rome"}, None))
    assert found == [{"id": 2, "nr": 1}, {"id": 2, "nr": 2}]


def test_equal_numbers_are_one_row() -> None:
    run = Running("SELECT o.id, s.nr FROM orders o JOIN shops s ON o.city = s.city")
    run.batch(("shops", {"nr": 0.0, "city": "Rome"}, None))
    run.batch(("shops", {"nr": -0.0, "city": "Oslo"}, None))
    found = run.batch(
        ("orders", {"id": 1, "city": "Rome"}, None), ("orders", {"id": 2, "city": "Oslo"}, None)
    )
    assert found == [{"id": 2, "nr": -0.0}]


def test_a_row_whose_join_key_fails_is_found_no_more() -> None:
    run = Running(
        "SELECT o.id, s.nr FROM orders o LEFT JOIN shops s ON o.id = CAST(s.city AS BIGINT)"
    )
    run.batch(("shops", {"nr": 1, "city": "7"}, None), ("shops", {"nr": 2, "city": "7"}, None))
    found = run.batch(("shops", {"nr": 2, "city": "x"}, None), ("orders", {"id": 7}, None))
    assert found == [{"id": 7, "nr": 1.0}, "table:s#1: sql"]

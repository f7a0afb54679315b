"""No statement of a step pairs all rows with all rows; a large batch would never end."""

# pyright: basic

import inspect
from contextlib import contextmanager

import pyarrow as pa
import pytest

from kaflow_engine.duck.queries import cursor
from kaflow_engine.errors import Location
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.operators.join import keyed_join as step
from kaflow_engine.operators.outcomes import ledger
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalPipeline

pytestmark = pytest.mark.slow

PRODUCTS = ("CROSS_PRODUCT", "BLOCKWISE_NL_JOIN")
ROWS, KEYS = 3_000, 1_000
START = 1_700_000_000_000
SCHEMAS = {
    "a": (Column("id", "VARCHAR"), Column("n", "BIGINT")),
    "b": (Column("id", "VARCHAR"), Column("x", "BIGINT")),
    "c": (Column("id", "VARCHAR"), Column("y", "BIGINT")),
}
TWO = "SELECT a.id, a.n, b.x FROM a {} JOIN b ON a.id = b.id"
THREE = "SELECT a.id, a.n, b.x, c.y FROM a {} JOIN b ON a.id = b.id {} JOIN c ON a.id = c.id"
DIMENSION = {"state": {"dimensions": ["b"]}}


class Explaining:
    """A connection that has each statement explained before it runs it."""

    def __init__(self, con, plans):
        self._con, self._plans = con, plans

    def __getattr__(self, name):
        return getattr(self._con, name)

    def execute(self, sql):
        # DuckDB finds it among the variables of whoever calls it
        incoming = inspect.currentframe().f_back.f_locals.get("incoming")  # noqa: F841
        self._plans.append((sql, self._con.execute(f"EXPLAIN {sql}").fetchall()[0][1]))
        return self._con.execute(sql)


@pytest.fixture
def plans(monkeypatch):
    found = []

    @contextmanager
    def explained():
        with cursor() as con:
            yield Explaining(con, found)

    for module in (step, ledger):
        monkeypatch.setattr(module, "cursor", explained)
    return found


def records(topic, column, late):
    values = [f'{{"id":"{i % KEYS}","{column}":{i}}}'.encode() for i in range(ROWS)]
    columns = {
        "topic": pa.repeat(topic, ROWS),
        "partition": pa.repeat(0, ROWS),
        "offset": range(ROWS),
        "timestamp": [START + i + late for i in range(ROWS)],
        "key": pa.nulls(ROWS),
        "value": values,
        "headers": pa.nulls(ROWS),
    }
    return pa.table([pa.array(columns[f.name]).cast(f.type) for f in RECORDS], schema=RECORDS)


@pytest.mark.parametrize(
    ("query", "more"),
    [
        (TWO.format("LEFT"), {}),
        (TWO.format(""), {}),
        (THREE.format("LEFT", ""), {}),
        (THREE.format("", "LEFT"), DIMENSION),
        (TWO.format("LEFT"), {**DIMENSION, "on_dimension_update": "reemit"}),
        (TWO.format("LEFT"), {"emission": {"type": "final"}}),
        (TWO.format("LEFT"), {**DIMENSION, "topics": {"b": {"lookup": "as_of"}}}),
    ],
)
def test_no_statement_makes_a_product(plans, query, more):
    spec = {"name": "p", "query": query, "output": {"topic": "out", "key": "id"}, **more}
    built = build_plan(pipeline_from_mapping(spec, Location("p.yaml")), Config(), SCHEMAS)
    topics = ("b", "a", "c") if query.count("JOIN") > 1 else ("b", "a")
    pipeline = LocalPipeline(built.plan, {topic: [0] for topic in topics})
    found = [records(t, c, late) for t, c, late in (("b", "x", 1), ("a", "n", 2), ("c", "y", 3))]
    pipeline.run(found[0].slice(0, ROWS // 2), START + 10_000)
    pipeline.run(pa.concat_tables(found[: len(topics)]), START + 10_000)
    assert any("JOIN" in plan for _, plan in plans)
    for sql, plan in plans:
        assert not any(product in plan for product in PRODUCTS), f"{sql}\n{plan}"

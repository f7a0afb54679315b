"""Which rows carry the original bytes of their record: those that may still become dead letters."""

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan

JOINED = "SELECT o.id, u.name FROM orders o LEFT JOIN users u ON o.user_id = u.id"
SCHEMAS = {
    "orders": (Column("id", "VARCHAR"), Column("user_id", "VARCHAR")),
    "users": (Column("id", "VARCHAR"), Column("name", "VARCHAR")),
}
SMART = {"type": "smart", "on_expiry": "drop"}
BY_ID = '("o.id") IS NULL'


@pytest.mark.parametrize(
    ("keys", "emission", "raw"),
    [
        ([None], {}, None),
        (["id"], {}, BY_ID),
        (["id"], SMART, None),
        (["id", "id"], SMART, None),
        (["id", None], SMART, BY_ID),
        (["id", None], {**SMART, "require": ["id"]}, None),
        (["id", "name"], SMART, "TRUE"),
        (["id", "name"], {**SMART, "require": ["name"]}, BY_ID),
        (["id", "name"], {**SMART, "on_expiry": "emit"}, "TRUE"),
        ([None, None], {**SMART, "on_expiry": "dead_letter"}, "TRUE"),
    ],
)
def test_rows_whose_key_may_be_null_carry_them(
    keys: list[str | None], emission: dict[str, object], raw: str | None
) -> None:
    outputs = [
        {"from": "joined", "topic": f"out{n}", **({} if key is None else {"key": key})}
        for n, key in enumerate(keys)
    ]
    mapping = {
        "name": "p",
        "relations": {"joined": {"query": JOINED}},
        "outputs": outputs,
        "emission": emission,
        "state": {"dimensions": ["users"]},
    }
    spec = pipeline_from_mapping(mapping, Location("p"), {})
    (chain,) = chains(build_plan(spec, Config(), SCHEMAS).plan)
    assert chain.driving.raw == raw


@pytest.mark.parametrize(
    ("select", "raw"),
    [
        ("o._headers AS _headers", None),
        ("map_concat(o._headers, map {'a': encode(u.name), 'b': NULL}) AS _headers", None),
        ("map {'a': CAST(o.id AS VARCHAR)} AS _headers", None),
        ("map {'a': u.name, 'a': u.name} AS _headers", "TRUE"),
        ("map {'a': CAST(CAST(u.name AS INTEGER) AS VARCHAR)} AS _headers", "TRUE"),
        ("map {u.name: 'a'} AS _headers", "TRUE"),
    ],
)
def test_rows_carry_them_whose_headers_may_not_be_made(select: str, raw: str | None) -> None:
    query = f"SELECT u.name, {select} FROM orders o LEFT JOIN users u ON o.user_id = u.id"
    assert raw_of(query) == raw


def test_rows_do_not_carry_them_for_a_trace() -> None:
    assert raw_of(JOINED, trace_context=True) is None


@pytest.mark.parametrize(
    ("made", "raw"), [("o.user_id", None), ("CAST(o.user_id AS INTEGER)", "TRUE")]
)
def test_rows_carry_them_whose_own_key_may_not_be_made(made: str, raw: str | None) -> None:
    below = f"SELECT o.id, o.user_id, {made} AS _key FROM orders o"
    query = f"SELECT r.id, u.name FROM ({below}) r LEFT JOIN users u ON r.user_id = u.id"
    assert raw_of(query) == raw


def raw_of(query: str, **output: object) -> str | None:
    mapping = {
        "name": "p",
        "query": query,
        "output": {"topic": "out", **output},
        "state": {"dimensions": ["users"]},
    }
    spec = pipeline_from_mapping(mapping, Location("p"), {})
    (chain,) = chains(build_plan(spec, Config(), SCHEMAS).plan)
    return chain.driving.raw

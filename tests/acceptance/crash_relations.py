"""Pipelines with windows, tables, DISTINCT, and joins of their rows, to two sinks, to be killed."""

from collections.abc import Sequence

from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from tests.acceptance.crash_pipeline import SIDES

WINDOWS = """
WITH once AS (SELECT DISTINCT id, n FROM "{0}.events")
SELECT id, window_start, count(*) AS visits, max(n) AS last, median(n::INTEGER) AS middle
FROM once GROUP BY id, tumble(INTERVAL 10 MINUTE)
"""
JOINED = """
SELECT p.id, p.tier, y.amount
FROM "{0}.profiles" p LEFT JOIN "{0}.payments" y ON substr(p.tier, 2) = y.n
"""
SEEN = """
SELECT id, window_start, count(*) AS visits, max(n) AS last
FROM "{0}.events" GROUP BY id, tumble(INTERVAL 10 MINUTE)
"""
NAMED = """
SELECT s.id, s.window_start, s.visits, p.tier
FROM seen s LEFT JOIN "{0}.profiles" p ON s.id = p._key
"""
MET = """
SELECT s.id, s.window_start, s.last, y.amount
FROM seen s LEFT JOIN "{0}.payments" y ON s.last = y.n
"""


def relations_plan(name: str, inputs: str) -> Flow:
    """Plan pipeline `name`.

    What was seen of each user in ten minutes goes to `<name>.out` once, and the profiles with what
    was paid for them, every change of it, to `<name>.paid`.
    """
    outputs = [
        {"query": WINDOWS.format(inputs), "topic": f"{name}.out", "format": "json"},
        {
            "query": JOINED.format(inputs),
            "topic": f"{name}.paid",
            "format": "json",
            "coalesce": "none",
        },
    ]
    more = {"outputs": outputs, "aggregation": {"ttl": "1h"}}
    return _plan(name, inputs, tables=("profiles", "payments"), **more)


def meetings_plan(name: str, inputs: str) -> Flow:
    """Plan pipeline `name`.

    What was seen of each user in ten minutes goes to `<name>.out` with the profile that is there
    when the window closes, and to `<name>.paid` with what was paid about that time.
    """
    return _plan(
        name,
        inputs,
        tables=("profiles",),
        relations={"seen": {"query": SEEN.format(inputs)}},
        outputs=[
            {"query": NAMED.format(inputs), "topic": f"{name}.out", "format": "json"},
            {"query": MET.format(inputs), "topic": f"{name}.paid", "format": "json"},
        ],
        emission={"type": "on_match"},
        within="20m",
    )


def _plan(name: str, inputs: str, *, tables: Sequence[str], **more: object) -> Flow:
    spec = {
        "name": name,
        **more,
        "dead_letters": {"topic": f"{name}.dead"},
        # the time a crash takes must not move the watermark
        "topics": {
            f"{inputs}.{side}": {"idle_timeout": "7d", "table": side in tables} for side in SIDES
        },
        "dimensions_first": False,
        "partitions": 2,
    }
    schemas = {
        f"{inputs}.{side}": tuple(Column(column, "VARCHAR") for column in columns)
        for side, columns in SIDES.items()
    }
    return build_plan(PipelineSpec.model_validate(spec), Config(), schemas).plan

"""A pipeline that writes two outputs of a kind that a file names, to be killed; and its rows."""
# pyright: basic

import json
from collections.abc import Mapping
from typing import Any

import httpx

from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.connection_specs import IcebergConnection
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from tests.acceptance.crash_pipeline import QUERY, SIDES
from tests.engine.connectors.iceberg_here import catalog_of

COUNTED = """
SELECT id, count(*) AS times, max(n) AS last
FROM "{0}.events" GROUP BY id HAVING count(*) % 4 <> 0
"""
"""Groups that come, change, go, and come again."""


def settings_of(kind: str, connection: Mapping[str, str]) -> dict[str, Any]:
    """Return what the configuration says of the system."""
    return {kind: {"connections": {"default": connection}}} if kind else {}


def sinks_plan(name: str, inputs: str, kind: str, connection: Mapping[str, str]) -> Flow:
    """Plan pipeline `name`: joined rows into the table `name`, and groups into another."""
    patient = {"idle_timeout": "7d"}
    often = {"interval": "100ms"} if kind == "iceberg" else {}
    rows, counted = ({"type": kind, "table": each, "create": True} for each in _tables(kind, name))
    spec = {
        "name": name,
        "relations": {"joined": {"query": QUERY.format(inputs)}},
        "outputs": [
            {"from": "joined", **rows, **often},
            {"query": COUNTED.format(inputs), "key": "id", **counted, **often},
        ],
        "dead_letters": {"topic": f"{name}.dead"},
        "emission": {"type": "smart", "require": ["tier"], "on_expiry": "emit"},
        "state": {"dimensions": [f"{inputs}.profiles"]},
        "topics": {f"{inputs}.{side}": patient for side in SIDES},
        "dimensions_first": False,
        "partitions": 2,
    }
    schemas = {
        f"{inputs}.{side}": tuple(Column(column, "VARCHAR") for column in columns)
        for side, columns in SIDES.items()
    }
    config = Config.model_validate(settings_of(kind, connection))
    return build_plan(PipelineSpec.model_validate(spec), config, schemas).plan


def _tables(kind: str, name: str) -> tuple[str, str]:
    """Return the names of both tables."""
    place = f"crash.{name}" if kind == "iceberg" else name
    return place, f"{place}_counted"


def sink_rows(kind: str, connection: Mapping[str, str], name: str) -> dict[bytes, list[bytes]]:
    """Return the rows of both tables, the number of each table before the key."""
    found: dict[bytes, list[bytes]] = {}
    for number, table in enumerate(_tables(kind, name)):
        for row in _ROWS[kind](connection, table):
            key = f"{number} {row['id']}".encode()
            found.setdefault(key, []).append(json.dumps(row, sort_keys=True).encode())
    assert len({key.partition(b" ")[0] for key in found}) == 2
    return {key: sorted(found[key]) for key in sorted(found)}


def _of_clickhouse(connection: Mapping[str, str], table: str) -> list[dict[str, Any]]:
    final, what = (" FINAL", "id, times, last") if table.endswith("_counted") else ("", "*")
    asked = f"SELECT {what} FROM `{table}`{final} FORMAT JSON"
    headers = {
        "X-ClickHouse-User": connection["user"],
        "X-ClickHouse-Key": connection["password"],
    }
    answer = httpx.post(connection["url"], content=asked.encode(), headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


def _of_iceberg(connection: Mapping[str, str], table: str) -> list[dict[str, Any]]:
    with catalog_of(IcebergConnection.model_validate(connection), "default") as catalog:
        return catalog.load_table(table).scan().to_arrow().to_pylist()


_ROWS = {"clickhouse": _of_clickhouse, "iceberg": _of_iceberg}

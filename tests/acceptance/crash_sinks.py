"""A pipeline that writes two outputs of a kind that a file names, to be killed; and its rows."""
# pyright: basic

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import httpx
from pyarrow.parquet import read_table

from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.connection_specs import IcebergConnection
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.state.storage.bucket import Bucket, BucketSettings
from tests.acceptance.bucket_here import KEYS, NAME
from tests.acceptance.crash_pipeline import QUERY, SIDES
from tests.engine.connectors.iceberg_here import catalog_of

COUNTED = """
SELECT id, count(*) AS times, max(n) AS last
FROM "{0}.events" GROUP BY id HAVING count(*) % 4 <> 0
"""
"""Groups that come, change, go, and come again."""
OFTEN = {"interval": "100ms"}


def settings_of(kind: str, connection: Mapping[str, str]) -> dict[str, Any]:
    """Return what the configuration says of the system; where a bucket is, `config_of` says."""
    return {kind: {"connections": {"default": connection}}} if kind not in ("", "files") else {}


def sinks_plan(name: str, inputs: str, kind: str, connection: Mapping[str, str]) -> Flow:
    """Plan pipeline `name`: joined rows into the table `name`, and groups into another.

    Of files, which have no changes, the second output has the rows, too, parted by a column.
    """
    patient = {"idle_timeout": "7d"}
    spec = {
        "name": name,
        "relations": {"joined": {"query": QUERY.format(inputs)}},
        "outputs": _files(name) if kind == "files" else _outputs_of(name, inputs, kind),
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


def _outputs_of(name: str, inputs: str, kind: str) -> list[dict[str, Any]]:
    often = OFTEN if kind == "iceberg" else {}
    rows, counted = ({"type": kind, "table": each, "create": True} for each in _tables(kind, name))
    return [
        {"from": "joined", **rows, **often},
        {"query": COUNTED.format(inputs), "key": "id", **counted, **often},
    ]


def _files(name: str) -> list[dict[str, Any]]:
    rows, parted = ({"type": "files", "folder": f"s3://{NAME}/{name}{n}", **OFTEN} for n in "01")
    return [
        {"from": "joined", **rows, "format": "json"},
        {"from": "joined", **parted, "partition_by": ["tier"]},
    ]


def _tables(kind: str, name: str) -> tuple[str, str]:
    """Return the names of both tables."""
    if kind == "files":
        return f"{name}0", f"{name}1"
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


def _of_files(connection: Mapping[str, str], folder: str) -> list[dict[str, Any]]:
    about = {**KEYS, "bucket": NAME, "prefix": folder, "endpoint": connection["endpoint"]}
    bucket, found = Bucket(BucketSettings(**about)), []
    assert bucket.staged() == []  # every upload is a file, or was ended
    for name in bucket.sizes(""):
        content = bucket.get(name)
        if name.endswith(".json"):
            found += [json.loads(line) for line in content[0].splitlines()]
        elif name.endswith(".parquet"):
            tier = name.partition("/")[0]
            found += [{**row, "tier": tier} for row in read_table(BytesIO(content[0])).to_pylist()]
    return found


_ROWS = {"clickhouse": _of_clickhouse, "iceberg": _of_iceberg, "files": _of_files}

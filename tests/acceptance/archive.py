"""Writes the first records of topics into files, as an archive would, and removes them there."""
# pyright: basic

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import TopicPartition
from deltalake import write_deltalake

from kaflow_engine.connectors.kafka.client import open_admin
from kaflow_engine.connectors.kafka.read import read_all

TWICE = 3
"""Records at the seam of two files that both hold."""
KEPT = 5
"""Records that files hold and the topic still has."""


def first_records(kafka, topic, share):
    """Return about a share of a topic's records, by partition."""
    table = read_all(kafka, topic).sort_by([("partition", "ascending"), ("offset", "ascending")])
    found = {}
    for row in table.to_pylist():
        found.setdefault(row["partition"], []).append(row)
    return {p: rows[: int(len(rows) * share)] for p, rows in found.items()}


def remove(kafka, topic, records):
    """Take what is archived out of the topic, but for a few records."""
    admin = open_admin(kafka).api
    places = [
        TopicPartition(topic, p, max(rows[-1]["offset"] + 1 - KEPT, 0))
        for p, rows in records.items()
    ]
    for answer in admin.delete_records(places).values():
        answer.result()


def raw_parquet(folder: Path, records):
    """Bytes and places, as Spark writes what it reads from Kafka; seams overlap."""
    folder.mkdir(parents=True)
    rows = [row for some in records.values() for row in some]
    half = len(rows) // 2
    for name, part in (("a b", rows[: half + TWICE]), ("c", rows[half:])):
        table = pa.table(
            {
                "key": pa.array([row["key"] for row in part], pa.binary()),
                "value": pa.array([row["value"] for row in part], pa.binary()),
                "partition": pa.array([row["partition"] for row in part], pa.int32()),
                "offset": pa.array([row["offset"] for row in part], pa.int64()),
                "timestamp": pa.array(
                    [row["timestamp"] for row in part], pa.timestamp("ms", "UTC")
                ),
            }
        )
        pq.write_table(table, folder / f"{name}.parquet")
    return {"path": f"{folder}/[ac]*.parquet", "value": "value"}


def json_lines(folder: Path, records):
    """Values with their offset and time in them, in a folder for each partition."""
    folder = folder / "v1.0"
    for partition, rows in records.items():
        target = folder / f"partition={partition}"
        target.mkdir(parents=True)
        lines = [
            json.dumps(
                {
                    "_offset": row["offset"],
                    "_at": row["timestamp"],
                    "_key": (row["key"] or b"").decode(),
                    "_value": (row["value"] or b"").decode(),
                }
            )
            for row in rows
        ]
        target.joinpath("part.json").write_text("\n".join(lines) + "\n")
    return {
        "path": str(folder),
        "format": "json",
        "offset": "_offset",
        "timestamp": "_at",
        "key": "_key",
        "value": "_value",
    }


def delta_columns(folder: Path, records):
    """Columns with types, as a lake keeps them; broken records are not there."""
    rows = []
    for some in records.values():
        for row in some:
            value = {} if row["value"].startswith(b"broken") else json.loads(row["value"])
            place = {name: row[name] for name in ("partition", "offset", "timestamp")}
            rows.append({**place, "key": row["key"].decode(), **value})
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    half = len(rows) // 2
    write_deltalake(folder, table.slice(0, half))
    write_deltalake(folder, table.slice(half), mode="append")
    return {"path": str(folder), "format": "delta"}


LAYOUTS = {"raw_parquet": raw_parquet, "json_lines": json_lines, "delta_columns": delta_columns}

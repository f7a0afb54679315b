"""Files of Avro as a source."""
# pyright: basic

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastavro.write import writer

from kaflow_engine.connectors.files.source import source as files
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from tests.engine.connectors.folder_here import World, read


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(files, "_SHARE", 0)
    return World(tmp_path)


AVRO: dict[str, Any] = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {
            "name": "price",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            ],
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}


def write_avro(path: Path, count: int, codec: str = "null") -> None:
    """Write records in blocks of some."""
    rows = [
        {
            "id": n,
            "at": datetime(2026, 1, 2, 3, 4, 5, n, UTC),
            "price": None if n % 2 else Decimal(n) / 4,
            "tags": ["é"] * (n % 3),
        }
        for n in range(count)
    ]
    with path.open("wb") as file:
        writer(file, AVRO, rows, codec=codec, sync_interval=100)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_records_of_avro_are_read_from_any_one_on(world: World, codec: str) -> None:
    write_avro(world.inside / "1.avro", 50, codec)
    source = world.source(format="avro")
    assert source.latest() == {0: 50}
    found = [json.loads(text) for text in read(source)]
    assert [row["id"] for row in found] == [*range(50)]
    assert found[1] == {
        "id": 1,
        "at": "2026-01-02T03:04:05.000001Z",
        "price": None,
        "tags": ["é"],
    }
    assert found[2]["price"] == 0.5
    for start, end in ((0, 1), (7, 31), (49, 50)):
        rows = [json.loads(text)["id"] for text in read(source, start, end)]
        assert rows == [*range(start, end)]
    sample = source_kind("files").sample(world.params(format="avro"), format_of("json"), {})
    assert sample == (
        Column("id", "BIGINT"),
        Column("at", "TIMESTAMP"),
        Column("price", "DECIMAL(9,2)"),
        Column("tags", "VARCHAR[]"),
    )


def test_avro_that_breaks_off_is_one_dead_letter(world: World) -> None:
    write_avro(world.inside / "1.avro", 50)
    whole = (world.inside / "1.avro").read_bytes()
    (world.inside / "1.avro").write_bytes(whole[: len(whole) // 2])
    source = world.source(format="avro")
    assert source.latest() == {0: 1}
    assert read(source) == ["-"]

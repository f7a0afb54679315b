"""The data of the benchmark: equal seeds, equal bytes."""

import io
import json
from hashlib import sha256
from typing import Any

import fastavro
import pytest

from bench.feed.data import (
    CHANGE_SCHEMA,
    CHUNK,
    CLICK_SCHEMA,
    KINDS,
    PROFILE_SCHEMA,
    Fill,
    messages,
    zigzag,
)
from bench.feed.fills import fills_for
from bench.options import RUNS, Sizes


def _digest(fill: Fill, chunk: int) -> str:
    return sha256(repr(messages(fill, chunk)).encode()).hexdigest()


def _fill(kind: str, **more: Any) -> Fill:
    return Fill(**{"topic": "t", "kind": kind, "records": 30_000, "keys": 500, **more})


@pytest.mark.parametrize("kind", KINDS)
def test_a_chunk_depends_on_seed_and_number_alone(kind: str):
    assert _digest(_fill(kind), 1) == _digest(_fill(kind), 1)
    if "profiles" not in kind:  # a profile has nothing random
        assert _digest(_fill(kind), 1) != _digest(_fill(kind, seed=7), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_hold_all_records(kind: str):
    fill = _fill(kind)
    assert fill.chunks == 2
    assert [len(messages(fill, chunk)) for chunk in range(2)] == [CHUNK, 30_000 - CHUNK]


@pytest.mark.parametrize("kind", ["clicks", "late_clicks", "purchases"])
def test_users_are_among_the_keys_and_time_goes_on(kind: str):
    rows = [json.loads(m["value"]) for m in messages(_fill(kind), 0)]  # type: ignore[arg-type]
    users = {int(row["user_id"][1:]) for row in rows}
    assert users <= set(range(500))
    assert len(users) > 300
    times = [row["timestamp"] for row in rows]
    assert times == sorted(times)
    assert times[-1] - times[0] == pytest.approx(60_000 * CHUNK / 30_000, abs=5)


def test_half_of_the_late_events_come_before_their_profile():
    fill = _fill("late_clicks", records=40_000, keys=40_000, delay=0.2)
    found = [json.loads(m["value"])["user_id"] for c in (0, 1) for m in messages(fill, c)]
    ahead = [int(user[1:]) - place for place, user in enumerate(found)]
    assert 0.47 < sum(distance > 0 for distance in ahead) / len(ahead) < 0.53
    assert max(map(abs, ahead)) <= 0.2 * 40_000 + 2


@pytest.mark.parametrize("number", [0, 1, -1, 63, 64, -65, 1_767_225_600_000])
def test_numbers_are_written_as_avro_writes_them(number: int):
    written = io.BytesIO()
    fastavro.schemaless_writer(written, {"type": "long"}, number)
    assert zigzag(number) == written.getvalue()


@pytest.mark.parametrize(
    ("kind", "schema", "user"),
    [("avro_clicks", CLICK_SCHEMA, None), ("avro_profiles", PROFILE_SCHEMA, "u0")],
)
def test_avro_is_framed_and_readable(kind: str, schema: Any, user: str | None):
    value = messages(_fill(kind, schema=258), 0)[0]["value"]
    assert isinstance(value, bytes)
    assert value[:5] == b"\0\0\0\1\2"
    row = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
    assert isinstance(row, dict)
    assert list(row) == [field["name"] for field in schema["fields"]]
    assert user in (None, row["user_id"])


@pytest.mark.parametrize("run", [run for run in RUNS])
def test_each_run_has_its_topics_once(run: str):
    topics = [fill.topic for fill in fills_for([run, run, "b"], Sizes(), 1)]
    assert len(topics) == len(set(topics))
    assert {"clicks", "profiles"} <= set(topics)


def test_changes_are_records_of_76_bytes_with_their_operation():
    found = messages(_fill("avro_changes", schema=7), 0)
    assert {len(m["value"]) for m in found} == {76}  # type: ignore[arg-type]
    (operation,) = found[1]["headers"]  # type: ignore[misc]
    assert operation == ("dbz.op", b"u")
    body = io.BytesIO(found[1]["value"][5:])  # type: ignore[index]
    row: Any = fastavro.schemaless_reader(body, CHANGE_SCHEMA, None)  # type: ignore[arg-type]
    assert (row["account"], row["status"]) == (found[1]["key"].decode(), "active")  # type: ignore[attr-defined]
    assert body.read() == b""

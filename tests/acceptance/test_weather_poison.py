"""1% poison records: none is lost, and no other costs more. KAFLOW_POISON_RECORDS for more."""
# pyright: basic

import json
import os
import random
import sys
from collections import Counter

import pyarrow as pa
import pytest

from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.testing.local.executor import LocalPipeline

pytestmark = pytest.mark.slow

RECORDS_READ = int(os.environ.get("KAFLOW_POISON_RECORDS", "50000"))
BATCH = 50_000
MOST_QUERIES = 3
"""Questions to DuckDB with poison over those without: sound records are not computed one by one."""
MOST_CALLS = 100
"""Calls of functions that Python makes more for each poison record, and for no other."""
START = 1_767_225_600_000
SPEC = PipelineSpec.model_validate(
    {
        "name": "poison",
        "query": "SELECT e.id, CAST(e.amount AS DECIMAL(18, 2)) AS amount, e.n + 1 AS n FROM e "
        "WHERE e.n % 10 <> 7",
        "output": {"topic": "o", "key": "id"},
        "topics": {
            "e": {
                "columns": {"id": "VARCHAR", "amount": "VARCHAR", "n": "BIGINT", "at": "BIGINT"},
                "event_time": "at",
            }
        },
    }
)
KINDS = ("no JSON", "no text", "wrong type", "no event time", "SQL error")


def value(n: int, kind: str | None) -> bytes:
    fields = {"id": f"k{n % 1000}", "amount": f"{n % 997}.25", "n": n, "at": START + n}
    match kind:
        case "no JSON":
            return b"{broken " + str(n).encode()
        case "no text":
            return b"\xff\xfe" + str(n).encode()
        case "wrong type":
            fields["n"] = "not a number"
        case "no event time":
            del fields["at"]
        case "SQL error":
            fields["amount"] = f"12,{n} EUR"
    return json.dumps(fields).encode()


def records(kinds: tuple[str, ...]) -> tuple[pa.Table, set[int]]:
    """Return the records, and the offsets of those that are poison."""
    dice = random.Random(1)
    places = {n for n in range(RECORDS_READ) if kinds and n % 10 != 7 and dice.random() < 0.01}
    values = [value(n, kinds[n % len(kinds)] if n in places else None) for n in range(RECORDS_READ)]
    numbers = range(RECORDS_READ)
    table = pa.table(
        {
            "topic": pa.array(["e"] * RECORDS_READ),
            "partition": pa.array([0] * RECORDS_READ, pa.int32()),
            "offset": pa.array(numbers, pa.int64()),
            "timestamp": pa.array([START + n for n in numbers], pa.int64()),
            "key": pa.nulls(RECORDS_READ, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "headers": pa.nulls(RECORDS_READ, RECORDS.field("headers").type),
        }
    )
    return table.cast(RECORDS), places


def run(plan, table):
    """Return the counters, the rows of schema OUTPUT, and how often what was called."""
    pipeline = LocalPipeline(plan, {"e": [0]})
    work = Counter()

    def note(frame, event, called):
        work[event] += 1
        if event == "c_call" and called.__name__ == "execute":
            work["queries"] += 1

    sys.setprofile(note)
    try:
        out = [
            pipeline.run(table.slice(at, BATCH), START + RECORDS_READ).output
            for at in range(0, RECORDS_READ, BATCH)
        ]
    finally:
        sys.setprofile(None)
    return pipeline.counters, pa.concat_tables(out), work


@pytest.fixture(scope="module")
def plan():
    columns = declared_columns(SPEC, "e")
    assert columns is not None
    return build_plan(SPEC, Config(), {"e": columns}).plan


@pytest.fixture(scope="module")
def clean():
    return records(())[0]


def test_poison_of_every_kind_costs_little_and_loses_nothing(plan, clean):
    dirty, places = records(KINDS)
    run(plan, dirty)  # what is done once in a process
    _, _, without = run(plan, clean)
    counters, output, work = run(plan, dirty)
    filtered = sum(n % 10 == 7 for n in range(RECORDS_READ))
    assert {name: count for name, count in counters.items() if count} == {
        "read": RECORDS_READ,
        "dead_letter": len(places),
        "filtered": filtered,
        "emitted": RECORDS_READ - len(places) - filtered,
    }
    letters = output.filter(pa.compute.equal(output["kind"], 1))
    found = set()
    for headers in letters["headers"].to_pylist():
        about = {header["key"]: header["value"] for header in headers}
        found.add(int(about["kaflow.offset"]))
        assert about["kaflow.message"]
    assert found == places
    assert 0 < work["queries"] <= MOST_QUERIES * without["queries"]
    assert work["call"] + work["c_call"] < without.total() + MOST_CALLS * len(places)


@pytest.mark.parametrize("kind", KINDS)
def test_poison_of_one_kind_is_named(plan, kind):
    """The first few in the words of whoever refused them, and all with the value."""
    dirty, places = records((kind,))
    counters, output, _ = run(plan, dirty)
    letters = output.filter(pa.compute.equal(output["kind"], 1))
    assert counters["dead_letter"] == letters.num_rows == len(places)
    phase = {"no event time": "event_time", "SQL error": "sql"}.get(kind, "decode")
    for headers in letters["headers"].to_pylist():
        about = {header["key"]: header["value"].decode() for header in headers}
        assert about["kaflow.phase"] == phase
        assert about["kaflow.error"].isidentifier()
        if kind == "SQL error":
            assert f"12,{about['kaflow.offset']} EUR" in about["kaflow.message"]
            assert about["kaflow.error"] == "ConversionError"

"""Handlers in pipelines: a service that answers otherwise the second time changes nothing."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.flow.records import RECORDS
from kaflow_engine.testing.local.executor import LocalPipeline
from kaflow_engine.testing.local.world import Crashed
from tests.engine.transforms.handler_here import pipeline_plan
from tests.receiver import Answer, Receiver, Request, running_receiver

pytestmark = pytest.mark.slow

START = 1_767_225_600_000
IDS = range(40)
PLACES = (
    *("before changes_written", "after changes_written"),
    *("before delivered", "after delivered", "before committed"),
)


class Fickle:
    """Answers otherwise each time; of each third row it wants nothing, but for the first time."""

    def __init__(self) -> None:
        self.first: dict[int, str | None] = {}
        self._numbers = count()

    def __call__(self, request: Request) -> Answer:
        said: list[Any] = []
        for row in json.loads(request.body):
            number = row["id"]
            risk = f"r{next(self._numbers) % 4}"
            again = number in self.first
            self.first.setdefault(number, None if number % 3 == 0 else risk)
            if number % 3 == 0 and not again:
                said.append("unknown" if number % 2 else {"id": "none"})
            else:
                said.append({"risk": risk})
        return Answer(200, json.dumps(said))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as found:
        yield found


def records() -> pa.Table:
    rows = [
        {
            "topic": "orders",
            "partition": number % 4,
            "offset": number // 4,
            "timestamp": START + number,
            "key": b"k",
            "value": json.dumps({"id": number, "amount": 0 if number == 17 else 1}).encode(),
            "headers": [],
        }
        for number in sorted(IDS, key=lambda number: number % 4)
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)


def written(output: pa.Table, topic: str) -> list[dict[str, Any]]:
    return [json.loads(row["value"]) for row in output.to_pylist() if row["topic"] == topic]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("spread", [False, True])
def test_a_batch_that_runs_again_is_the_same(receiver: Receiver, place: str, spread: bool) -> None:
    fickle = receiver.answer = Fickle()
    crashed: list[str] = []

    def crash(when: str, step: str) -> None:
        if f"{when} {step}" == place and not crashed:
            crashed.append(step)
            running._spread = not spread
            raise Crashed

    plan = pipeline_plan(receiver.url)
    running = LocalPipeline(plan, {"orders": range(4)}, spread=spread, replay=True, point=crash)
    done = running.run(records(), START)
    assert crashed
    rows = {row["id"]: row["risk"] for row in written(done.output, "risks")}
    said = {n: risk for n, risk in fickle.first.items() if n != 17}
    assert rows == {n: risk for n, risk in said.items() if risk is not None}
    assert done.counters == {"read": 40, "emitted": 25, "dead_letter": 15}
    counts = {row["risk"]: row["n"] for row in written(done.output, "counts")}
    assert counts == Counter(rows.values())
    letters = [row for row in done.output.to_pylist() if row["topic"] == "p.dead_letters"]
    headers = [{h["key"]: h["value"] for h in row["headers"]} for row in letters]
    assert Counter(h["kaflow.phase"] for h in headers) == {b"transform": 14, b"sql": 1}
    assert len(receiver.requests) == (8 if spread else 7)

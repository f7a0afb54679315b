"""States of plugins: committed with the batch, whatever crashes, and however a batch is cut."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pyarrow as pa
import pytest

from kaflow_engine.errors import Location, SinkUnfit
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.plugins import state
from kaflow_engine.plugins.installed import SINKS, TRANSFORMS
from kaflow_engine.plugins.state import Learned, Owner, after, merged
from kaflow_engine.testing.local.executor import LocalPipeline
from kaflow_engine.testing.local.world import Crashed, Protocol
from tests.conftest import OfferPlugins

OWNER = Owner(TRANSFORMS, "frozen.highest", "seen")
GROUPS, ROWS = 3, 60
FAILS = "CAST(CASE WHEN n = 17 THEN 'none' ELSE '1' END AS INTEGER)"
"""Fails behind the transform for one row, which is then given to it again without that one."""
PLACES = [f"{when} {step}" for step in get_args(Protocol) for when in ("before", "after")]


@pytest.fixture(autouse=True)
def installed(offer_plugins: OfferPlugins, frozen_plugins: None) -> None:
    offer_plugins(
        {
            TRANSFORMS: {"frozen.highest": "frozen_2.highest:Highest"},
            SINKS: {"frozen.tallied": "frozen_2.tallied:Tallied"},
        }
    )


def plan() -> Flow:
    spec = pipeline_from_mapping(
        {
            "name": "p",
            "topics": {"t": {"columns": {"g": "VARCHAR", "n": "BIGINT"}}},
            "relations": {
                "seen": {
                    "type": "frozen.highest",
                    "from": "t",
                    "options": {"group": "g", "value": "n"},
                }
            },
            "outputs": [
                {"query": f"SELECT g, n, highest_before, {FAILS} AS ok FROM seen", "topic": "o"}
            ],
        },
        Location("p.yaml"),
    )
    return build_plan(spec, Config(), {"t": (Column("g", "VARCHAR"), Column("n", "BIGINT"))}).plan


def batches() -> Iterator[pa.Table]:
    for first in range(0, ROWS, 20):
        yield pa.Table.from_pylist(
            [
                {
                    "topic": "t",
                    "partition": n % 2,
                    "offset": n // 2,
                    "timestamp": n,
                    "key": b"k",
                    "value": json.dumps({"g": f"g{n % GROUPS}", "n": n}).encode(),
                    "headers": [],
                }
                for n in sorted(range(first, first + 20), key=lambda n: n % 2)
            ],
            schema=RECORDS,
        )


def run(place: str, spread: bool) -> tuple[list[Mapping[str, Any]], Mapping[str, Any]]:
    """Run all batches, each of which crashes once; return what was delivered, and the state."""
    crashed: set[int] = set()

    def crash(when: str, step: str) -> None:
        number = len(running._world.commits)  # pyright: ignore[reportPrivateUsage]
        if f"{when} {step}" == place and number not in crashed:
            crashed.add(number)
            raise Crashed(copies_lost=number % 2 == 0)

    running = LocalPipeline(plan(), {"t": range(2)}, spread=spread, replay=True, point=crash)
    rows: list[Mapping[str, Any]] = []
    for number, records in enumerate(batches()):
        done = running.run(records, 1_000 + number)
        rows += [json.loads(row["value"]) for row in done.output.to_pylist() if row["topic"] == "o"]
    return rows, running._world.states[OWNER.text]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("place", ["", *PLACES])
def test_each_row_counts_once_and_later_batches_see_it(place: str, spread: bool) -> None:
    rows, kept = run(place, spread)
    assert kept == {
        f"g{group}": {"highest": ROWS - GROUPS + group, "rows": ROWS // GROUPS}
        for group in range(GROUPS)
    }
    seen = {row["n"]: row["highest_before"] for row in rows}
    assert seen == {
        n: max((m for m in range(n - n % 20) if m % GROUPS == n % GROUPS), default=None)
        for n in range(ROWS)
        if n != 17
    }


def test_a_row_that_is_given_twice_counts_once() -> None:
    learned = Learned()
    one = {"highest": 1, "rows": 1}
    learned.take(OWNER, {"a": [("g", one)], "b": [("g", one), ("h", one)]})
    learned.take(OWNER, {"b": [("g", one), ("h", one)]})
    assert learned.note() == {OWNER.text: {"g": {"highest": 1, "rows": 2}, "h": one}}
    learned.clear()
    assert learned.note() == {}


def test_states_are_those_of_their_owners() -> None:
    other = Owner(SINKS, "frozen.tallied", "frozen.tallied:rows")
    assert Owner.of(other.text) == other
    before = {other.text: {"rows": 3}, "kaflow.sinks:gone.away:x": {"a": 1}}
    assert after(before, [{other.text: {"rows": 2}}, {other.text: {"rows": 4}}]) == {
        other.text: {"rows": 9},
        "kaflow.sinks:gone.away:x": {"a": 1},
    }


@pytest.mark.parametrize("key", [7, None, ("g", 1)])
def test_a_key_that_is_no_text_is_refused(key: Any) -> None:
    with pytest.raises(SinkUnfit, match=r"learns under the key .*, which is no text"):
        merged(OWNER, {}, [("g", {"highest": 1, "rows": 1}), (key, {"highest": 1, "rows": 1})])


@pytest.mark.parametrize(
    ("added", "says"),
    [
        (
            {"rows": 1},
            "plugin 'frozen.highest' of 'seen' cannot merge its state: KeyError: 'highest'\n"
            "  hint: correct 'merge' of the plugin; then start the pipeline, and the batch runs "
            "again",
        ),
        (
            {"highest": "x" * 80, "rows": 1},
            "the state of plugin 'frozen.highest' of 'seen' has 113 bytes\n"
            "  hint: it may have 100: let 'merge' of the plugin return None for keys that are no "
            "longer needed",
        ),
    ],
)
def test_what_cannot_be_kept_ends_the_run(
    added: Mapping[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "MOST_BYTES", 100)
    with pytest.raises(SinkUnfit) as caught:
        after({}, [{OWNER.text: {"g": added}}])
    assert str(caught.value) == says

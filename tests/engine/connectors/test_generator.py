"""Made-up records: each a function of the seed and its offset, in the distribution that is said."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import pytest

from kaflow_engine.connectors.generator.source import CHUNK, GeneratorSource
from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.flow.sources import DrawnParams, GeneratorParams
from kaflow_engine.state.storage.store import LocalStore

NOW = 1_795_296_000_000
NOTHING: dict[str, Any] = {
    "min": 0,
    "max": 100,
    "digits": 0,
    "mean": 0,
    "deviation": 1,
    "of": (),
    "prefix": None,
    "nulls": 0,
}


def column(name: str, distribution: str, **more: Any) -> DrawnParams:
    return DrawnParams(name=name, distribution=distribution, **(NOTHING | more))


COLUMNS = (
    column("n", "sequence", prefix="n"),
    column("whole", "uniform", min=-1.5, max=3),
    column("part", "uniform", min=1, max=2, digits=2),
    column("normal", "normal", mean=50, deviation=10, digits=3),
    column("choice", "choice", of=("a", "b", "c")),
    column("skewed", "skewed", max=100, prefix="u"),
    column("t", "time"),
    column("gap", "sequence", nulls=0.25),
)
PARAMS = GeneratorParams(rate=100, seed=7, records=None, start=NOW - 100_000, values=COLUMNS)


def source(path: Path, params: GeneratorParams = PARAMS, now: int = NOW) -> GeneratorSource:
    place = SourcePlace(name="made", store=LocalStore(path), journal=path, clock=lambda: now)
    return GeneratorSource(params, place)


def rows(path: Path, params: GeneratorParams = PARAMS) -> list[dict[str, Any]]:
    made = source(path, params)
    return [json.loads(value) for value in made.read({0: 0}, made.latest())["value"].to_pylist()]


def test_values_are_distributed_as_is_said(tmp_path: Path) -> None:
    found = rows(tmp_path)
    assert len(found) == 10_001
    by_name = {name: [row[name] for row in found] for name in found[0]}
    assert by_name["n"] == [f"n{n}" for n in range(len(found))]
    counts = Counter(by_name["whole"])
    assert sorted(counts) == [-1, 0, 1, 2, 3]
    assert all(abs(count - len(found) / 5) < 200 for count in counts.values())
    assert min(by_name["part"]) == 1
    assert max(by_name["part"]) == 2
    assert abs(fmean(by_name["part"]) - 1.5) < 0.02
    assert abs(fmean(by_name["normal"]) - 50) < 0.5
    assert abs(pstdev(by_name["normal"]) - 10) < 0.5
    assert all(abs(n - len(found) / 3) < 200 for n in Counter(by_name["choice"]).values())
    users = [int(name[1:]) for name in by_name["skewed"]]
    assert (min(users), max(users)) == (1, 100)
    assert sum(user <= 25 for user in users) > 0.45 * len(users)
    assert by_name["t"][:3] == [NOW - 100_000, NOW - 99_990, NOW - 99_980]
    missing = sum(value is None for value in by_name["gap"])
    assert abs(missing - len(found) / 4) < 200
    together = np.corrcoef([row["whole"] for row in found], [row["part"] for row in found])
    assert abs(together[0][1]) < 0.05


def test_the_same_seed_gives_the_same_records_and_another_one_others(tmp_path: Path) -> None:
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    other = rows(tmp_path, replace(PARAMS, seed=8))
    differ = sum(
        one["choice"] != two["choice"] for one, two in zip(rows(tmp_path), other, strict=True)
    )
    assert abs(differ - len(other) * 2 / 3) < 200


@pytest.mark.parametrize("start", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1])
def test_cuts_do_not_matter(tmp_path: Path, start: int) -> None:
    made = source(tmp_path, replace(PARAMS, rate=1000))
    whole = made.read({0: 0}, {0: 2 * CHUNK}).slice(start).to_pylist()
    assert made.read({0: start}, {0: 2 * CHUNK}).to_pylist() == whole


@pytest.mark.parametrize("rate", [0.1, 3, 7.7, 1000, 12_345])
def test_records_appear_at_their_rate(tmp_path: Path, rate: float) -> None:
    begin = NOW - 10_000
    params = replace(PARAMS, rate=rate, start=begin)
    for now in (begin - 1, begin, begin + 1, begin + 999, NOW):
        made = source(tmp_path, params, now)
        end = made.latest()[0]
        stamps = made.read({0: 0}, {0: end + 1})["timestamp"].to_pylist()
        assert all(stamp <= now for stamp in stamps[:-1])
        assert stamps[-1] > now
        assert made.start(now) == {0: sum(stamp < now for stamp in stamps)}


def test_records_end_where_that_is_said(tmp_path: Path) -> None:
    made = source(tmp_path, replace(PARAMS, records=5))
    assert (made.latest(), made.bounded) == ({0: 5}, True)
    young = source(tmp_path, replace(PARAMS, records=5, start=NOW - 20))
    assert (young.latest(), young.bounded) == ({0: 3}, False)
    assert not source(tmp_path).bounded


def test_records_begin_when_the_state_does_and_later_runs_know_it(tmp_path: Path) -> None:
    params = replace(PARAMS, start=None)
    assert source(tmp_path, params).latest() == {0: 1}
    later = source(tmp_path, params, NOW + 10_000)
    assert later.latest() == {0: 1001}
    assert later.read({0: 0}, {0: 1})["timestamp"].to_pylist() == [NOW]

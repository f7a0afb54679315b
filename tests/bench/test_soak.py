"""What makes a soak fail, and what it is fed."""

from itertools import islice
from typing import Any

import pytest

from bench.soak.feed import CLICKS, PROFILES, soak_records
from bench.soak.verdicts import Sample, judge

HOUR = 3_600.0


def _samples(**grows: float) -> list[Sample]:
    """An hour of samples; sizes grow by so many MiB an hour."""
    found: list[Sample] = []
    for i in range(361):
        at = i * 10.0
        sizes: dict[str, Any] = {"driver": 300.0, "jvm": 800.0, "worker": 400.0, "state": 50.0}
        sizes = {name: mib + grows.get(name, 0.0) * at / HOUR for name, mib in sizes.items()}
        found.append(
            Sample(
                at=at,
                rss={
                    "driver": sizes["driver"],
                    "jvm": sizes["jvm"],
                    "worker 7": sizes["worker"] / 2,
                    "worker 8": sizes["worker"] / 2,
                },
                state=sizes["state"],
                copies=30.0,
                snapshots=10.0,
                spark=0.1,
                lag=0,
                waiting=100,
            )
        )
    return found


STEADY = [(at, 100.0 + at % 7) for at in range(3_600)]


def _broken(verdicts: list[dict[str, Any]]) -> list[str]:
    return [verdict["promise"].split("'")[0] for verdict in verdicts if not verdict["holds"]]


def test_a_steady_hour_keeps_every_promise():
    found = judge(_samples(), STEADY)
    assert _broken(found["verdicts"]) == []
    assert found["slopes"]["worker"]["mean_mib"] == 400
    assert found["batches"]["max_ms"] == 106


@pytest.mark.parametrize(
    ("grows", "broken"),
    [
        ({"jvm": 30.0}, []),
        ({"jvm": 60.0}, ["memory of jvm grows by at most 5% an hour"]),
        ({"worker": 30.0}, ["memory of worker grows by at most 5% an hour"]),
        ({"driver": 20.0}, ["memory of driver grows by at most 5% an hour"]),
        ({"jvm": -200.0}, []),
        ({"state": 5.0}, []),
        ({"state": 60.0}, ["directory "]),
    ],
)
def test_growth(grows: dict[str, float], broken: list[str]):
    assert _broken(judge(_samples(**grows), STEADY)["verdicts"]) == broken


@pytest.mark.parametrize(("at", "broken"), [(200.0, 0), (2_000.0, 1)])
def test_a_slow_batch_counts_after_the_warm_up(at: float, broken: int):
    found = judge(_samples(), [*STEADY, (at, 400.0)])
    assert len(_broken(found["verdicts"])) == broken


def test_what_grows_only_while_it_warms_up_does_not_count():
    samples = _samples()
    cold = [s for s in samples if s.at < 360]
    early = [Sample(**{**_fields(s), "rss": {**s.rss, "jvm": 800.0 * s.at / 360}}) for s in cold]
    found = judge([*early, *samples[len(cold) :]], STEADY)
    assert _broken(found["verdicts"]) == []


def _fields(sample: Sample) -> dict[str, Any]:
    return {name: getattr(sample, name) for name in Sample.__slots__}


@pytest.mark.parametrize("batches", [STEADY, []])
def test_nothing_seen_is_no_success(batches: list[tuple[float, float]]):
    assert _broken(judge(_samples()[:3], batches)["verdicts"]) == ["long enough"]


def test_no_batch_is_no_success():
    assert _broken(judge(_samples(), [])["verdicts"]) == [
        "no batch takes more than 3 times the median"
    ]


def test_the_load_has_early_late_and_missing_profiles():
    made = list(islice(soak_records(seed=3), 20_000))
    keys = [(click[1], late) for click, late in made]
    new = [(key, late) for key, late in keys if key.startswith(b"s")]
    assert 0.04 < len(new) / len(made) < 0.06
    assert {click[0] for click, _ in made} == {CLICKS}
    late = [profile for _, profile in new if profile is not None]
    assert len(late) == pytest.approx(len(new) / 2, abs=1)
    assert {topic for topic, _, _ in late} == {PROFILES}
    assert all(key == profile[1] for key, profile in new if profile is not None)
    assert len({key for key, _ in new}) == len(new)

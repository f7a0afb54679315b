"""Medians of rounds, ratios, goals, the page and the plot."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.options import RUNS, Sizes, read_options, scaled
from bench.report.nexmark import NEXMARK_TITLES
from bench.report.page import PLOT, TITLES, markdown, plot, write_page
from bench.report.results import GOALS, combined, judged
from bench.report.sections import NEXMARK_HEADING, PEERS_HEADING, with_section
from bench.report.shares import STEPS


def _round(floor: float, **rates: float) -> dict[str, dict[str, Any]]:
    return {
        "floor": {"records_per_s": floor, "batch_ms": 400.0},
        **{run: {"records_per_s": rate, "batch_ms": 1000.0} for run, rate in rates.items()},
    }


def test_ratios_are_taken_within_a_round():
    # the second round ran while something else used the machine
    found = combined([_round(1000, a=400), _round(100, a=40), _round(900, a=360)])
    assert found["floor"]["records_per_s"] == 900
    assert found["runs"]["a"] == {"records_per_s": 360, "batch_ms": 1000, "of_floor": 0.4}


def test_numbers_at_any_depth_have_medians():
    rounds = [{"g": {"a": {"p99_ms": p99}}} for p99 in (100.0, 300.0, 200.0)]
    assert combined(rounds) == {"floor": {}, "runs": {"g": {"a": {"p99_ms": 200}}}}


def test_a_run_that_only_some_rounds_have_counts():
    assert combined([_round(10), _round(10, b=5)])["runs"]["b"]["records_per_s"] == 5


@pytest.mark.parametrize(
    ("runs", "goal", "measured", "reached"),
    [
        ({"a": {"of_floor": 0.45}}, "(a) of the floor", 0.45, True),
        ({"a": {"of_floor": 0.44}}, "(a) of the floor", 0.44, False),
        (
            {"b": {"records_per_s": 89}, "c": {"records_per_s": 100}},
            "(b) of (c)",
            0.89,
            False,
        ),
        ({"f": {"restart_s": 30.0}}, "(f) restart, s", 30, True),
        ({"f": {"rss_mb": 1_950}}, "(f) process tree, MiB", 1_950, False),
        ({"g": {"b": {"p99_ms": 221}}}, "(g) p99 of (b), ms", 221, False),
    ],
)
def test_goals(runs: dict[str, Any], goal: str, measured: float, reached: bool):
    (found,) = judged(runs)
    assert (found["goal"], found["measured"], found["reached"]) == (goal, measured, reached)


def test_what_was_not_measured_is_not_judged():
    assert judged({"h": {"records_per_s": 5}}) == []


def _result() -> dict[str, Any]:
    shares = dict.fromkeys(STEPS, 1 / len(STEPS))
    more = {"rss_mb": 1_500.0, "worker_mb": 400.0, "shares": shares}
    more["cpu_s_per_million"] = {"driver": 0.5, "jvm": 3.0, "worker": 4.25, "broker": 1.0}
    rates: dict[str, float] = {run: 100_000.0 for run in "abcdefhjklmnopqrstuvxyz"}
    rounds = [_round(1_000_000, **rates)]
    for run in rates:
        rounds[0][run] |= more
    rounds[0]["f"] |= {"restart_s": 12.5, "load_records_per_s": 150_000.0}
    rounds[0]["g"] = {w: {"p50_ms": 100, "p95_ms": 200, "p99_ms": 300} for w in "ab"}
    batches = {"records_per_s": 90_000.0, "rows": 500, "rss_mb": 1_200.0, "batch_p99_ms": 80.0}
    rounds[0]["nexmark"] = {name: batches for name in NEXMARK_TITLES}
    rounds[0]["w"] = {"alone_per_s": 19_500.0, "running_per_s": 9_900.0}
    found = combined(rounds)
    return {
        "date": "2026-01-01T00-00-00Z",
        "machine": {
            "cpu": "A <fast> one",
            "cores": 2,
            "memory_gib": 24.0,
            "system": "Linux 6",
            "python": "3.11.7",
            "versions": {"pyspark": "4.2.0"},
        },
        "master": "local[2]",
        "rounds": 1,
        "sizes": {"events": 3_200_000, "keys": 200_000, "big_keys": 10**7, "batch": 400_000},
        **found,
        "goals": judged(found["runs"]),
    }


def test_the_page_tells_every_run_and_every_goal(tmp_path):
    write_page(_result(), tmp_path / "docs" / "benchmark.md")
    page = (tmp_path / "docs" / "benchmark.md").read_text()
    assert f"({PLOT})" in page
    assert (tmp_path / "docs" / PLOT).exists()
    for title in TITLES.values():
        assert f"| {title} |" in page
    for goal in GOALS:
        assert f"| {goal.what} |" in page
    assert "| (a) filter and project, JSON | 100,000 | 0.10 | 1,000 | 1,500 | 400 |" in page
    assert "first new row: 12.5 s" in page
    assert "answers 19,500 requests/s alone, and 9,900 with its pipeline" in page
    assert (
        "| q5 | auctions with the most bids, hop 10 s / 2 s | 90,000 | 500 | 1,200 |  | 80 |"
        in page
    )
    assert "| a | 0.50 | 3.00 | 4.25 | 1.00 |" in page
    assert "| (a) filter and project, JSON | 100 | 200 | 300 |" in page
    widths = {line.count("|") for line in page.splitlines() if line.startswith("| (")}
    assert widths == {7, 5}  # the runs' table, and those of latency and goals


def test_a_page_of_a_few_runs_has_no_empty_parts():
    result = _result()
    result["runs"] = {"a": {"records_per_s": 5.0, "batch_ms": 2.0}}
    result["goals"] = []
    page = markdown(result)
    assert "## Latency" not in page
    assert "## Nexmark" not in page
    assert "restart" not in page
    assert "| (a) filter and project, JSON | 5 |  | 2 |  |  |" in page


def test_the_plot_is_well_formed_and_to_scale():
    tree = ElementTree.fromstring(plot(_result()))
    bars = [float(e.attrib["width"]) for e in tree.iter() if e.attrib.get("height") == "22"]
    assert len(bars) == 24
    assert bars[0] == pytest.approx(10 * bars[1], rel=0.01)


def test_a_plot_without_bars_is_a_plot():
    ElementTree.fromstring(plot({"floor": {}, "runs": {}}))


@pytest.mark.parametrize(
    ("arguments", "only"),
    [
        ([], RUNS),
        (["--only", "a,b"], ("floor", "a", "b")),
        (["--only", "b,a"], ("floor", "a", "b")),
        (["--only", "i"], ("floor", "a", "b")),
        (["--only", "g"], ("floor", "g")),
    ],
)
def test_the_runs_that_are_asked_for(arguments: list[str], only: tuple[str, ...]):
    assert read_options(arguments).only == only


def test_an_unknown_run_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        read_options(["--only", "a,ä"])
    assert "unknown runs ä; there are floor, a, b" in capsys.readouterr().err


def test_sizes_come_from_options_before_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCH_EVENTS", "1000")
    monkeypatch.setenv("BENCH_ROUNDS", "7")
    assert read_options([]).sizes.events == 1000
    assert read_options([]).rounds == 7
    assert read_options(["--events", "5"]).sizes.events == 5


def test_smaller_sizes_keep_the_number_of_batches():
    small = scaled(Sizes(), 0.1)
    assert small.events / small.batch == Sizes().events / Sizes().batch
    assert small.big_keys == 1_000_000
    assert scaled(Sizes(), 1) == Sizes()


def test_sections_that_are_measured_apart_are_kept_and_replaced(tmp_path: Path):
    page = tmp_path / "benchmark.md"
    alone = _result()
    alone["floor"], alone["runs"] = {}, {"nexmark": alone["runs"]["nexmark"], "i": {}}
    write_page(_result(), page)
    whole = page.read_text()
    page.write_text(with_section(whole, [PEERS_HEADING, "", "much faster"]))
    alone["date"] = "2026-02-02T00-00-00Z"
    write_page(alone, page)
    assert page.read_text().count("2026-02-02") == page.read_text().count(NEXMARK_HEADING) == 1
    assert page.read_text().replace("2026-02-02", "2026-01-01").startswith(whole.rstrip())
    few = {**_result(), "runs": {"a": {"records_per_s": 5.0, "batch_ms": 2.0}}}
    write_page(few, page)
    assert "2026-02-02" in page.read_text()
    assert page.read_text().endswith(f"{PEERS_HEADING}\n\nmuch faster\n")

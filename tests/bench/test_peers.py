"""The comparison with peers: what is measured from outside, its table, and what it needs."""

from collections import Counter
from collections.abc import Mapping
from json import loads
from pathlib import Path
from typing import Any

import pytest

from bench.feed.data import Fill, clicks_in_windows, kept_clicks, messages
from bench.peers.jobs import PEERS, find_jdk
from bench.peers.measure import calibration_ms, rate
from bench.peers.table import section
from bench.report.sections import PEERS_HEADING
from kaflow_engine.errors import RunError


@pytest.mark.parametrize(
    ("samples", "records_per_s"),
    [
        ([(1_000, 10), (2_000, 60), (3_000, 80), (4_000, 100)], 20.0),
        # a commit that completes the first half and more
        ([(1_000, 40), (2_000, 90), (2_500, 100)], 20.0),
    ],
)
def test_the_first_half_is_start_and_warm_up(samples: list[tuple[int, int]], records_per_s: float):
    assert rate(samples) == records_per_s


def test_rows_that_come_at_once_are_too_few():
    with pytest.raises(ValueError, match="too few to measure"):
        rate([(1_000, 10), (2_000, 100)])


def test_clicks_that_pass_the_filter_are_known_before_it_runs():
    fill = Fill(topic="clicks", kind="clicks", records=45_000, keys=3_000, seed=4)
    sent = [bytes(m["value"]) for chunk in range(fill.chunks) for m in messages(fill, chunk)]  # type: ignore[arg-type]
    small = sum(b'"amount":0.' in value for value in sent)
    assert 0 < small < 1_000
    assert kept_clicks(fill) == 45_000 - small


def test_clicks_in_windows_are_those_that_are_sent():
    fill = Fill(topic="clicks", kind="clicks", records=90_000, keys=100, seed=4)
    sent = [
        loads(bytes(m["value"]))  # type: ignore[arg-type]
        for chunk in range(fill.chunks)
        for m in messages(fill, chunk)
    ]
    expected = Counter((each["user_id"], each["timestamp"] // 5_000 * 5_000) for each in sent)
    ended = sent[20_000 * 2 - 1]["timestamp"]  # of the fifth chunk there is a half, in the first
    rows = clicks_in_windows(fill, 5_000).to_pylist()
    found = {(row["user_id"], row["start"]): row["clicks"] for row in rows}
    assert len(found) == len(rows)
    assert found == {key: n for key, n in expected.items() if key[1] + 5_000 <= ended}


def test_the_machine_is_measured():
    assert calibration_ms(2) > 0


@pytest.mark.parametrize(
    "environ", [{}, {"PATH": "/nowhere"}, {"PATH": "/nowhere", "JAVA_HOME": "/nowhere/jdk"}]
)
def test_without_a_jdk_it_says_so(environ: Mapping[str, str]):
    with pytest.raises(RunError, match="no JDK >= 17 found"):
        find_jdk({"PATH": "", **environ})


def test_an_old_jdk_will_not_do(tmp_path: Path):
    javac = tmp_path / "bin" / "javac"
    javac.parent.mkdir()
    javac.write_text("#!/bin/sh\necho javac 11.0.2\n")
    javac.chmod(0o755)
    with pytest.raises(RunError, match=r"looked at: .*bin/javac"):
        find_jdk({"PATH": "", "JAVA_HOME": str(tmp_path)})
    javac.write_text("#!/bin/sh\necho javac 17.0.15\n")
    assert find_jdk({"PATH": "", "JAVA_HOME": str(tmp_path)}).java == tmp_path / "bin" / "java"


def _round(ours: int, flink: int, streams: int, counting: int) -> dict[str, Any]:
    engines = {"kaflow": ours, "flink": flink, "kafka_streams": streams}
    return {
        "calibration_ms": 200.0,
        "w1": engines,
        "w2": {name: value // 2 for name, value in engines.items()},
        "w3": {**engines, "flink": counting},
        "latency_ms": {name: {"p50": 100, "p99": 250} for name in ("kaflow", "kafka_streams")},
        "first_output_s": {name: 7.25 for name in engines},
        "rss_mb": {name: 1_500 for name in engines},
    }


def test_the_table_has_medians_and_ratios_of_rounds():
    result = {
        "date": "2026-01-01T00-00-00Z",
        "machine": {"cpu": "A fast one", "cores": 2},
        "options": {"events": 12_000_000, "keys": 200_000},
        # the second round ran while something else used the machine
        "rounds": [
            _round(400, 200, 100, 800),
            _round(40, 20, 10, 80),
            _round(420, 200, 100, 840),
        ],
    }
    lines = section(result)
    assert lines[0] == PEERS_HEADING
    assert "| kaflow | 400 | 200 | 400 | 100 | 250 | 7.2 | 1,500 |" in lines
    assert f"| {PEERS[0].title} | 200 | 100 | 800 |  |  | 7.2 | 1,500 |" in lines
    assert any("W1 2.00 of Flink SQL" in line for line in lines)
    assert any("W2 4.00 of Kafka Streams" in line for line in lines)
    assert f"Where kaflow loses, by these medians: W3 is 0.50 of {PEERS[0].title}." in lines
    assert "Where kaflow loses, by these medians: nowhere." in section(
        {**result, "rounds": [_round(400, 200, 100, 400)]}
    )
    slow = _round(400, 200, 100, 400)
    slow["first_output_s"]["kaflow"] = 9.0
    lines = section({**result, "rounds": [slow]})
    assert any("(s) is 9.0, and 7.2 with Flink SQL" in line for line in lines)

"""Measures: what adds up, what is the last one, and what labels cannot do."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kaflow_engine import measures
from kaflow_engine.connectors.journal.open_journals import open_journal
from kaflow_engine.connectors.journal.receivers import Inlet, measured_of
from kaflow_engine.measures import Measure, Measures, Series, added, of_json, to_json
from kaflow_engine.plugins import metrics
from kaflow_engine.plugins.metrics import PluginMetrics
from kaflow_engine.telemetry.metrics.of_plugins import of_plugins
from kaflow_engine.telemetry.progress import Progress


def test_counts_grow_levels_are_the_last_and_times_add_up() -> None:
    found = Measures()
    for _ in range(2):
        found.count("rows", 3, b="2", a="1")
        found.level("keys", 7)
        found.time("call", 0.5)
    found.level("keys", 5)
    once = {
        Series("count", "rows", (("a", "1"), ("b", "2"))): Measure(6, 2),
        Series("level", "keys"): Measure(5, 3),
        Series("time", "call"): Measure(1.0, 2),
    }
    assert found.taken() == once
    again = added(once, of_json(json.loads(json.dumps(to_json(once)))))
    assert [each.value for each in again.values()] == [12, 5, 2.0]
    assert found.handed_over() == once
    assert found.taken() == {}


def test_there_is_an_end_to_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "MOST", 2)
    found = Measures()
    for user in ("a", "b", "c", "a"):
        found.count("rows", user=user)
    assert [each.value for each in found.taken().values()] == [2, 1]


@pytest.mark.parametrize(
    ("name", "labels", "why"),
    [
        ("Rows", {}, "names have small letters"),
        ("rows", {"pipeline": "p"}, "'pipeline' cannot be the name of a label"),
        ("rows", {"Of": "p"}, "'Of' cannot be the name of a label"),
        ("rows", {"of": "p" * 257}, "label 'of' has more than 256 characters"),
        ("rows", {f"l{n}": "" for n in range(21)}, "more than 20 labels"),
        ("rows", {"shard": 7}, "label 'shard' is no text"),
        (7, {}, "names have small letters"),
    ],
)
def test_what_a_plugin_measures_wrongly_is_left_out(
    name: Any, labels: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    metrics._warn.cache_clear()  # pyright: ignore[reportPrivateUsage]
    found = Measures()
    for _ in range(2):
        PluginMetrics("acme.seen", found).count(name, 1, **labels)
    assert found.taken() == {}
    (warned,) = caplog.messages
    assert warned.startswith(f"plugin 'acme.seen' measures '{name}', which is not kept: ")
    assert why in warned


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "many", None, [1]])
def test_a_count_by_what_is_no_number_is_left_out(
    value: Any, caplog: pytest.LogCaptureFixture
) -> None:
    metrics._warn.cache_clear()  # pyright: ignore[reportPrivateUsage]
    found = Measures()
    PluginMetrics("acme.seen", found).count("rows", value)
    assert found.taken() == {}
    assert "its value is no finite number from 0" in caplog.text


def test_numbers_of_numpy_are_reported_as_those_of_python() -> None:
    found = Measures()
    PluginMetrics("acme.seen", found).count("rows", np.int64(3), of="a")  # pyright: ignore[reportArgumentType]
    assert json.loads(json.dumps(to_json(found.taken()))) == [
        ["count", "plugin_acme_seen_rows", [["of", "a"]], 3, 1]
    ]


def test_metrics_of_plugins_are_told_apart_by_their_names() -> None:
    found = Measures()
    PluginMetrics("acme.a", found).count("rows")
    PluginMetrics("acme.b-c", found).count("rows")
    assert [each.name for each in found.taken()] == ["plugin_acme_a_rows", "plugin_acme_b_c_rows"]


def test_sources_of_one_plugin_add_up(tmp_path: Path) -> None:
    with ExitStack() as journals:
        inlets = [
            Inlet(
                name=name,
                params=None,
                journal=journals.enter_context(open_journal(tmp_path / name)),
                secrets={},
                patience=0,
            )
            for name in ("left", "right")
        ]
        for inlet in inlets:
            PluginMetrics("acme.lines", inlet.measures).count("lines", 2)
        found = measured_of(inlets)
    assert found[Series("count", "plugin_acme_lines_lines")].value == 4
    assert {dict(series.labels).get("source") for series in found} == {None, "left", "right"}


def test_a_sample_of_a_plugin_is_there_once() -> None:
    rows = Series("count", "plugin_acme_rows_rows", (("of", "a"),))
    at = Progress(pipeline="p", measured=((rows, Measure(2)),), received=((rows, Measure(3)),))
    (family,) = of_plugins([at])
    assert [sample.value for sample in family.samples if sample.name.endswith("_total")] == [5]

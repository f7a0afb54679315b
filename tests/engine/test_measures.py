"""Measures: what adds up, what is the last one, and what labels cannot do."""

import json

import pytest

from kaflow_engine import measures
from kaflow_engine.measures import Measure, Measures, Series, added, of_json, to_json
from kaflow_engine.plugins import metrics
from kaflow_engine.plugins.metrics import PluginMetrics


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
    ],
)
def test_what_a_plugin_measures_wrongly_is_left_out(
    name: str, labels: dict[str, str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    metrics._warn.cache_clear()  # pyright: ignore[reportPrivateUsage]
    found = Measures()
    for _ in range(2):
        PluginMetrics("acme.seen", found).count(name, 1, **labels)
    assert found.taken() == {}
    (warned,) = caplog.messages
    assert warned.startswith(f"plugin 'acme.seen' measures '{name}', which is not kept: ")
    assert why in warned


def test_metrics_of_plugins_are_told_apart_by_their_names() -> None:
    found = Measures()
    PluginMetrics("acme.a", found).count("rows")
    PluginMetrics("acme.b-c", found).count("rows")
    assert [each.name for each in found.taken()] == ["plugin_acme_a_rows", "plugin_acme_b_c_rows"]

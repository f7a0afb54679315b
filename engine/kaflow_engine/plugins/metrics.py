"""Metrics of plugins: names and labels are their own, and nothing that is wrong stops a run."""

import logging
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kaflow_engine.measures import Measures

LOGGER = logging.getLogger("kaflow.plugin")

PREFIX = "plugin_"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")
_OWN = ("pipeline",)
_MOST_LABELS, _MOST_TEXT = 20, 256


@dataclass(frozen=True, slots=True)
class PluginMetrics:
    """Records what a plugin measures, with labels.

    What tasks record counts when their batch is done: once, however often it was begun.
    """

    plugin: str
    """Its name; metrics are called `kaflow_plugin_<namespace>_<name>_<metric>`."""
    measures: Measures

    def count(self, name: str, by: float = 1, /, **labels: str) -> None:
        """Add to a count that only grows: a counter, whose name ends in `_total`."""
        self._take(self.measures.count, name, by, labels, least=0)

    def level(self, name: str, value: float, /, **labels: str) -> None:
        """Say what a level is now: a gauge. Of several tasks of a batch the last one counts."""
        self._take(self.measures.level, name, value, labels)

    def time(self, name: str, seconds: float, /, **labels: str) -> None:
        """Say how long something took: a summary of seconds, whose name ends in `_seconds`."""
        self._take(self.measures.time, name, seconds, labels)

    def _name(self, name: str) -> str:
        return f"{PREFIX}{self.plugin.replace('.', '_').replace('-', '_')}_{name}"

    def _take(
        self,
        record: Callable[..., None],
        name: str,
        value: object,
        labels: Mapping[str, object],
        least: float = -math.inf,
    ) -> None:
        """Record a value as a number of Python's own, which a task can report as JSON."""
        number = _number(value)
        why = _unfit(name, labels)
        if why is None and (not math.isfinite(number) or number < least):
            why = f"its value is no finite number{' from 0' if least == 0 else ''}"
        if why is None:
            record(self._name(name), number, **labels)
        else:
            _warn(self.plugin, str(name), why)


def _number(value: Any) -> float:
    """Return a value as a number; one that is none is NaN."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _unfit(name: object, labels: Mapping[str, object]) -> str | None:
    """Return what is wrong with a name or with labels; None: nothing."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return "names have small letters, digits and '_'"
    if len(labels) > _MOST_LABELS:
        return f"it has more than {_MOST_LABELS} labels"
    for label, value in labels.items():
        if not _NAME.fullmatch(label) or label in _OWN:
            return f"'{label}' cannot be the name of a label"
        if not isinstance(value, str):
            return f"label '{label}' is no text"
        if len(value) > _MOST_TEXT:
            return f"label '{label}' has more than {_MOST_TEXT} characters"
    return None


@lru_cache(maxsize=1_000)
def _warn(plugin: str, name: str, why: str) -> None:
    """Log once in a process."""
    LOGGER.warning("plugin '%s' measures '%s', which is not kept: %s", plugin, name, why)

"""What plugins measure: names and labels are their own, and nothing that is wrong stops a run."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

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
        if self._fits(name, labels) and by >= 0:
            self.measures.count(self._name(name), by, **labels)

    def level(self, name: str, value: float, /, **labels: str) -> None:
        """Say what a level is now: a gauge. Of several tasks of a batch the last one counts."""
        if self._fits(name, labels):
            self.measures.level(self._name(name), value, **labels)

    def time(self, name: str, seconds: float, /, **labels: str) -> None:
        """Say how long something took: a summary of seconds, whose name ends in `_seconds`."""
        if self._fits(name, labels):
            self.measures.time(self._name(name), seconds, **labels)

    def _name(self, name: str) -> str:
        return f"{PREFIX}{self.plugin.replace('.', '_').replace('-', '_')}_{name}"

    def _fits(self, name: str, labels: Mapping[str, str]) -> bool:
        why = _unfit(name, tuple(labels.items()))
        if why is not None:
            _warn(self.plugin, name, why)
        return why is None


def _unfit(name: str, labels: tuple[tuple[str, str], ...]) -> str | None:
    """Return what is wrong with a name or with labels; None: nothing."""
    if not _NAME.fullmatch(name):
        return "names have small letters, digits and '_'"
    if len(labels) > _MOST_LABELS:
        return f"it has more than {_MOST_LABELS} labels"
    for label, value in labels:
        if not _NAME.fullmatch(label) or label in _OWN:
            return f"'{label}' cannot be the name of a label"
        if len(value) > _MOST_TEXT:
            return f"label '{label}' has more than {_MOST_TEXT} characters"
    return None


@lru_cache(maxsize=1_000)
def _warn(plugin: str, name: str, why: str) -> None:
    """Log once in a process."""
    LOGGER.warning("plugin '%s' measures '%s', which is not kept: %s", plugin, name, why)

"""Errors of plugins: which may heal, and which someone must act on."""

import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from kaflow_engine.connectors.plugin_sources.kind import opened
from kaflow_engine.connectors.plugin_sources.replayed import PluginSource
from kaflow_engine.connectors.sources.plugin_contract import Given, TimedRow
from kaflow_engine.errors import SourceAway, SourceError, SourceUnfit
from kaflow_engine.flow.origins.plugins import PluginParams
from kaflow_engine.plugins.installed import SOURCES
from tests.conftest import OfferPlugins

HERE = "tests.engine.connectors.test_plugin_sources"
HINT = "correct the plugin, or the 'options' that it gets"
FAILURES = [
    (ConnectionResetError("reset"), SourceAway, "ConnectionResetError: reset", None),
    (TimeoutError("slow"), SourceAway, "TimeoutError: slow", None),
    (KeyError("id"), SourceUnfit, "KeyError: 'id'", HINT),
    (OSError("no disk"), SourceUnfit, "OSError: no disk", HINT),
    (SourceAway("a pause", hint="wait"), SourceAway, "a pause", "wait"),
    (SourceUnfit("no login"), SourceUnfit, "no login", None),
]


class Options(BaseModel):
    pass


class Failing:
    """A plugin that fails at one of the things that it is asked."""

    options, replays, error = Options, True, Exception()

    def __init__(self, at: str = "open", error: Exception | None = None) -> None:
        self.at, self.error = at, self.error if error is None else error

    def bounded(self, options: Options) -> bool:
        return True

    def columns(self, options: Options) -> None:
        return None

    def open(self, given: Given) -> Any:
        raise self.error

    def ends(self) -> Mapping[int, int]:
        return self._said("ends", {0: 3})

    def starts(self, since: int | None) -> Mapping[int, int]:
        return self._said("starts", {0: 0})

    def rows(self, partition: int, start: int, end: int) -> Iterator[TimedRow]:
        yield TimedRow(row={"n": 0}, timestamp=0)
        self._said("rows", {})

    def _said(self, what: str, value: Mapping[int, int]) -> Mapping[int, int]:
        if what == self.at:
            raise self.error
        return value


CALLS: dict[str, tuple[str, Callable[[PluginSource], object]]] = {
    "partitions": ("ends", lambda source: source.partitions()),
    "latest": ("ends", lambda source: source.latest()),
    "start": ("starts", lambda source: source.start("earliest")),
    "read": ("rows", lambda source: source.read({0: 0}, {0: 3})),
    "a task": (
        "rows",
        lambda source: [*pickle.loads(pickle.dumps(source.reads({0: 0}, {0: 3})[0]))()],
    ),
}


def check(caught: SourceError, kind: type[SourceError], said: str, hint: str | None) -> None:
    assert type(caught) is kind
    assert caught.message.endswith(said)
    assert caught.hint == hint


@pytest.mark.parametrize(("error", "kind", "said", "hint"), FAILURES)
@pytest.mark.parametrize("call", CALLS)
def test_a_plugin_that_reads_again(
    call: str, error: Exception, kind: type[SourceError], said: str, hint: str | None
) -> None:
    at, ask = CALLS[call]
    source = PluginSource(name="s", kind="acme.rows", source=Failing(at, error), finite=True)
    with pytest.raises(SourceError) as caught:
        ask(source)
    check(caught.value, kind, said, hint)


@pytest.mark.parametrize(("error", "kind", "said", "hint"), FAILURES)
def test_a_plugin_that_does_not_open(
    monkeypatch: pytest.MonkeyPatch,
    offer_plugins: OfferPlugins,
    tmp_path: Path,
    error: Exception,
    kind: type[SourceError],
    said: str,
    hint: str | None,
) -> None:
    offer_plugins({SOURCES: {"acme.rows": f"{HERE}:Failing"}})
    monkeypatch.setattr(Failing, "error", error)
    params = PluginParams(type="acme.rows", bounded=True, options=())
    with pytest.raises(SourceError) as caught:
        opened(params, "s", {}, tmp_path)
    check(caught.value, kind, said, hint)

"""Receivers: what comes from outside is written to journals while the process lives.

All kinds keep to the same promises. What was written down, and synced, is a record once. Who sent
it is told so, where the protocol has words for that, and not before. While a journal is full,
nothing more is taken. An error that cannot heal is the verdict of the journal, and ends the
pipeline.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from kaflow_engine.connectors.journal.folder import journal_folder
from kaflow_engine.connectors.journal.journal import Journal
from kaflow_engine.connectors.journal.open_journals import open_journal
from kaflow_engine.connectors.journal.redriven import taking
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.sources import JournalParams
from kaflow_engine.measures import Kind, Measure, Measured, Measures, Series

Received = Callable[[], Measured]
"""Returns what was measured so far."""

RECEIVERS: Mapping[str, str] = {
    "webhook": "kaflow_engine.connectors.http.receiving:Webhooks",
    "websocket": "kaflow_engine.connectors.websocket.receiving:Websockets",
    "http": "kaflow_engine.connectors.http.polling:PolledUrls",
    "mqtt": "kaflow_engine.connectors.mqtt.receiving:MqttTopics",
    "pyspark": "kaflow_engine.connectors.pyspark.receiving:PySparkRows",
}
"""The kinds of sources that have a journal → module and class of a `Receiver`."""
PLUGIN = "kaflow_engine.connectors.plugin_sources.receiving:PluginRows"
"""Of all whose names have a dot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inlet:
    """A source of a pipeline, and the journal that its records are written to."""

    name: str
    params: Any
    """Its settings, of the kind that the receiver is for."""
    journal: Journal
    secrets: Mapping[str, str] = field(repr=False)
    """By name."""
    patience: float
    """Seconds that an outside system may be away before the pipeline ends."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What the configuration says of the plugin that it is of."""
    measures: Measures = field(default_factory=Measures, repr=False)

    def measured(self) -> dict[Series, Measure]:
        """Return what was measured of it so far, and of its journal."""
        journal, labels = self.journal, (("source", self.name),)
        now: dict[tuple[Kind, str], int] = {
            ("count", "receiver_records"): journal.written,
            ("count", "receiver_bytes"): journal.written_bytes,
            ("level", "journal_waiting"): journal.backlog,
            ("level", "journal_records"): journal.end,
            ("level", "journal_bytes"): journal.size(),
        }
        own = {Series(kind, name, labels): Measure(value) for (kind, name), value in now.items()}
        return {**self.measures.taken(), **own}

    def count(self, name: str, by: int = 1, /, **labels: str) -> None:
        """Count something that the receiver has met."""
        self.measures.count(name, by, source=self.name, **labels)

    @property
    def is_full(self) -> bool:
        """Whether so many records wait for the pipeline that no more are taken."""
        return self.journal.backlog >= self.params.max_backlog


class Receiver(Protocol):
    """Takes what comes to the sources of one kind."""

    def receiving(self, inlets: Sequence[Inlet]) -> AbstractContextManager[None]:
        """Take what comes, to the end of the block; what fails later is a journal's `failure`.

        Raises:
            RunError: It cannot begin.
        """
        ...


@lru_cache(maxsize=16)
def receiver(kind: str) -> Receiver:
    """Return the receiver of a kind of source, imported on first use."""
    target = PLUGIN if "." in kind else RECEIVERS[kind]
    module, _, attribute = target.partition(":")
    found: Receiver = getattr(import_module(module), attribute)()
    return found


@contextmanager
def receiving(
    plan: Flow,
    root: Path,
    secrets: Mapping[str, str],
    patience: float,
    settings: Callable[[JournalParams], Mapping[str, str]] = lambda params: {},
) -> Generator[Received]:
    """Take what comes to the sources of a plan, to the end of the block; yields what says what was
    measured of it.

    Args:
        plan: The lease of its state is held.
        root: The folder of all states.
        secrets: By name.
        patience: Seconds that an outside system may be away.
        settings: What the configuration says of the plugin of a source.

    Raises:
        RunError: A receiver cannot begin.
        StateError: A journal cannot be written.
    """
    with ExitStack() as resources:
        by_kind: dict[str, list[Inlet]] = {}
        for topic in plan.sources:
            params = topic.connector
            if isinstance(params, JournalParams):
                folder = journal_folder(root, plan.pipeline, topic.name)
                inlet = Inlet(
                    name=topic.name,
                    params=params,
                    journal=resources.enter_context(open_journal(folder)),
                    secrets=secrets,
                    patience=patience,
                    settings=settings(params),
                )
                for name in ("receiver_full", "receiver_failures"):
                    inlet.count(name, 0)  # what begins with 1 is no increase
                by_kind.setdefault(params.type, []).append(inlet)
        open_inlets = [inlet for inlets in by_kind.values() for inlet in inlets]
        resources.enter_context(taking({inlet.name: inlet.journal for inlet in open_inlets}))
        for kind, inlets in by_kind.items():
            resources.enter_context(receiver(kind).receiving(inlets))
        yield partial(measured_of, open_inlets)


def measured_of(inlets: Iterable[Inlet]) -> Measured:
    """Return what was measured of several sources; what those of one plugin measure under one name
    adds up."""
    found = Measures()
    for inlet in inlets:
        found.add(inlet.measured())
    return found.taken()

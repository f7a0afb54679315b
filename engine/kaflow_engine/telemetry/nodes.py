"""Nodes: what each part of a pipeline took, gave and waited for, to find the one that is slow."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from kaflow_engine.measures import Measure
from kaflow_engine.telemetry.progress import Progress

Part = Literal["source", "query", "transform", "state", "sink"]

_BEFORE: Mapping[Part, tuple[str, ...]] = {
    "source": (),
    "query": ("input",),
    "transform": ("input",),
    "state": ("input",),
    "sink": ("input", "exchange", "state_read", "sql", "state_write"),
}
_BEHIND: Mapping[Part, tuple[str, ...]] = {
    "source": ("exchange", "state_read", "sql", "state_write", "produce", "commit"),
    "query": ("produce", "commit"),
    "transform": ("produce", "commit"),
    "state": ("produce", "commit"),
    "sink": (),
}
"""The steps in which a part waits for what stands before it, and for what stands behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAccount:
    """One part of a pipeline, since its process started."""

    kind: Part
    name: str
    rows_in: float | None = None
    """None: they are not counted there."""
    rows_out: float | None = None
    seconds: float = 0.0
    """That tasks worked on it; those of sources are shared by their records."""
    calls: int = 0
    """In how many parts."""
    idle: float = 0.0
    """Seconds that it had nothing to do, as `idle_seconds` says."""
    blocked: float = 0.0
    """Seconds that it waited for what stands behind it, as `blocked_seconds` says."""


def accounts_of(at: Progress) -> tuple[NodeAccount, ...]:
    """Return the parts of a pipeline in the order in which rows pass them."""
    of_transforms = sum(m.value for (_, name, _), m in at.measured if name == "transform")
    queries = max(_spent(at, "sql", "exchange") - of_transforms, 0.0)
    found = [
        *_sources(at),
        NodeAccount(kind="query", name="queries", seconds=queries),
        *_transforms(at),
        *_state(at),
        *_sinks(at),
    ]
    return tuple(
        replace(e, idle=idle_seconds(at, e.kind), blocked=blocked_seconds(at, e.kind))
        for e in found
    )


def slowest(accounts: tuple[NodeAccount, ...]) -> NodeAccount | None:
    """Return the part that tasks worked on most; None: nothing was done yet."""
    busiest = max(accounts, key=lambda each: each.seconds, default=None)
    return busiest if busiest is not None and busiest.seconds else None


def idle_seconds(at: Progress, kind: Part) -> float:
    """Return how long parts of a kind had nothing to do: while no batch ran, and while rows were on
    their way to them."""
    return at.paused + _spent(at, *_BEFORE[kind])


def blocked_seconds(at: Progress, kind: Part) -> float:
    """Return how long parts of a kind waited for what stands behind them in a batch."""
    return _spent(at, *_BEHIND[kind])


def _sources(at: Progress) -> Iterator[NodeAccount]:
    counted = _by_label(at, "source_records", "topic")
    records = sum(each.value for each in counted.values())
    for topic, measure in counted.items():
        share = measure.value / records if records else 0.0
        seconds = _spent(at, "input") * share
        yield NodeAccount(kind="source", name=topic, rows_out=measure.value, seconds=seconds)


def _transforms(at: Progress) -> Iterator[NodeAccount]:
    given, made = (
        _by_label(at, name, "transform") for name in ("transform_rows", "transform_results")
    )
    for name, spent in _by_label(at, "transform", "transform").items():
        yield NodeAccount(
            kind="transform",
            name=name,
            rows_in=given[name].value if name in given else None,
            rows_out=made[name].value if name in made else None,
            seconds=spent.value,
            calls=spent.times,
        )


def _state(at: Progress) -> Iterator[NodeAccount]:
    if at.sizes:
        seconds = _spent(at, "state_read", "state_write")
        yield NodeAccount(kind="state", name="state", seconds=seconds)


def _sinks(at: Progress) -> Iterator[NodeAccount]:
    """Topics are written together, so that their time is shared by their rows."""
    spent = _by_label(at, "sink", "output")
    together = {name: rows for name, rows in at.written.items() if name not in spent}
    topics, rows_of_topics = spent.get(_TOPICS, Measure(0.0, 0)), sum(together.values())
    for name, rows in at.written.items():
        own, share = spent.get(name), rows / rows_of_topics if rows_of_topics else 0.0
        yield NodeAccount(
            kind="sink",
            name=name,
            rows_in=rows,
            seconds=own.value if own else topics.value * share,
            calls=own.times if own else topics.times,
        )


_TOPICS = "records"
"""The output that all topics together are to what measures deliveries."""


def _by_label(at: Progress, series: str, label: str) -> dict[str, Measure]:
    return {
        dict(labels)[label]: measure
        for (_, name, labels), measure in at.measured
        if name == series and label in dict(labels)
    }


def _spent(at: Progress, *steps: str) -> float:
    return sum(at.spent.get(step, 0.0) for step in steps) / 1000

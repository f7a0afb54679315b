"""Metrics of nodes under the names and labels of another system, for files of its own.

They are ours, asked for differently: nothing is measured for them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from kaflow_engine.model.brought.nodes import FileMetrics, NodeMetrics
from kaflow_engine.telemetry.nodes import NodeAccount, accounts_of, blocked_seconds, idle_seconds
from kaflow_engine.telemetry.progress import Progress

_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAt:
    """A node at one moment."""

    node: NodeMetrics
    at: Progress
    before: Progress
    """When the batch before was over."""
    account: NodeAccount | None
    """The part of the pipeline where its rows are counted; None: there were none yet."""
    account_before: NodeAccount | None

    @property
    def rows(self) -> float | None:
        """Rows that have left it, 0 before the first; None: they are not counted."""
        return self._rows(self.account)

    @property
    def rate(self) -> float | None:
        """Those of the last batch, by second; None: there was none."""
        now, then = self.rows, self._rows(self.account_before)
        ended, began = self.at.batch_end, self.before.batch_end
        if now is None or then is None or ended is None or began is None or ended <= began:
            return None
        return (now - then) / (ended - began) * _MS

    @property
    def worked(self) -> tuple[float, int] | None:
        """Milliseconds that tasks worked on it, and in how many parts; None: that is not known."""
        found = self.account
        return None if found is None or not found.calls else (found.seconds * _MS, found.calls)

    def _rows(self, account: NodeAccount | None) -> float | None:
        counted = self.node.rows
        if counted is None:
            return None
        rows = account and (account.rows_in if counted.coming_in else account.rows_out)
        return rows or 0.0


Value = float | tuple[float, int] | None
"""A number, or a sum and how many numbers it is of; None: there is none."""


@dataclass(frozen=True, slots=True)
class NodeMetric:
    """One metric of nodes."""

    name: str
    """Behind the prefix."""
    kind: Literal["counter", "gauge", "summary"]
    help: str
    value: Callable[[NodeAt], Value]


def _worked(node: NodeAt) -> Value:
    """Of a query nothing is known: its reader is what is counted."""
    return None if node.node.kind == "query" else node.worked


def _of_sources(value: Callable[[Progress], float]) -> Callable[[NodeAt], Value]:
    return lambda node: value(node.at) if node.node.kind == "source" else None


NODE_METRICS: tuple[NodeMetric, ...] = (
    NodeMetric("output_rows_total", "counter", "Rows that left a node.", lambda node: node.rows),
    NodeMetric(
        "output_rows_rate",
        "gauge",
        "Rows by second that left a node in the last batch.",
        lambda node: node.rate,
    ),
    NodeMetric("output_rows_latency", "summary", "Milliseconds of work on a node.", _worked),
    NodeMetric(
        "node_idle_wait",
        "summary",
        "Milliseconds without rows: while no batch ran, and while rows were on their way.",
        lambda node: (idle_seconds(node.at, node.node.kind) * _MS, node.at.batches),
    ),
    NodeMetric(
        "node_backpressure_wait",
        "summary",
        "Milliseconds of work on what stands behind a node.",
        lambda node: (blocked_seconds(node.at, node.node.kind) * _MS, node.at.batches),
    ),
    NodeMetric(
        "node_empty_batch_total",
        "counter",
        "Batches without a record.",
        _of_sources(lambda at: at.empty_batches),
    ),
    NodeMetric(
        "node_empty_streak",
        "gauge",
        "Batches without a record since the last one that had some.",
        _of_sources(lambda at: at.empty_streak),
    ),
)
"""All of them."""

DELTA = "output_rows_delta"
"""What OpenTelemetry gets besides: rows since it was sent last."""


def nodes_of(
    files: Mapping[str, FileMetrics], newest: Iterable[tuple[Progress, Progress]]
) -> Iterator[tuple[str, NodeAt]]:
    """Yield the nodes of all files, each with the prefix of its metrics.

    Args:
        files: By pipeline.
        newest: Of each pipeline, now and when the batch before was over.
    """
    for at, before in newest:
        file = files.get(at.pipeline, FileMetrics())
        if not file.nodes:
            continue
        now, then = _by_name(at), _by_name(before)
        for node in file.nodes:
            key = (node.rows.kind, node.rows.name) if node.rows else ("", "")
            yield (
                file.prefix,
                NodeAt(
                    node=node,
                    at=at,
                    before=before,
                    account=now.get(key),
                    account_before=then.get(key),
                ),
            )


def _by_name(at: Progress) -> dict[tuple[str, str], NodeAccount]:
    return {(each.kind, each.name): each for each in accounts_of(at)}


def of_nodes(
    files: Mapping[str, FileMetrics], newest: Iterable[tuple[Progress, Progress]]
) -> Iterator[Metric]:
    """Yield the metrics of nodes, as prometheus_client wants them.

    A label that only some nodes have is empty on the others.
    """
    nodes = [*nodes_of(files, newest)]
    for prefix in dict.fromkeys(prefix for prefix, _ in nodes):
        mine = [node for each, node in nodes if each == prefix]
        for metric in NODE_METRICS:
            yield _family(prefix + metric.name, metric, mine)


def labels_of(node: NodeAt) -> dict[str, str]:
    """Return the labels of a node: the pipeline, and its own."""
    return {"pipeline": node.at.pipeline, **node.node.labels}


def _family(name: str, metric: NodeMetric, nodes: list[NodeAt]) -> Metric:
    labels = [*dict.fromkeys(label for node in nodes for label in labels_of(node))]
    counter = CounterMetricFamily(name, metric.help, labels=labels)
    gauge = GaugeMetricFamily(name, metric.help, labels=labels)
    summary = SummaryMetricFamily(name, metric.help, labels=labels)
    for node in nodes:
        own, value = labels_of(node), metric.value(node)
        values = [own.get(label, "") for label in labels]
        match value:
            case None:
                continue
            case (total, times):
                summary.add_metric(values, times, total)
            case _ if metric.kind == "counter":
                counter.add_metric(values, value)
            case _:
                gauge.add_metric(values, value)
    return {"counter": counter, "gauge": gauge, "summary": summary}[metric.kind]

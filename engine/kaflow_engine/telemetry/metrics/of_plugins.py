"""What plugins measure, as metrics: their names and labels are known when they are measured."""

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from kaflow_engine.measures import Kind, Measure, Series, added
from kaflow_engine.plugins.metrics import PREFIX
from kaflow_engine.telemetry.progress import Progress

_ENDS: dict[Kind, str] = {"count": "_total", "level": "", "time": "_seconds"}

Found = tuple[str, Series, Measure]
"""The pipeline, what is measured, and what was."""


def of_plugins(newest: Iterable[Progress]) -> Iterator[Metric]:
    """Yield what plugins of some pipelines have measured, as prometheus_client wants it.

    A label that only some samples of a metric have is empty on the others. Where two kinds of
    measures would be called alike, the first one stays. What a plugin measures in tasks and as a
    source under one name and labels is one sample.
    """
    by_name: dict[str, list[Found]] = {}
    for at in newest:
        for series, measure in added(dict(at.measured), at.received).items():
            if series.name.startswith(PREFIX):
                name = f"kaflow_{series.name}{_ENDS[series.kind]}"
                by_name.setdefault(name, []).append((at.pipeline, series, measure))
    for name, found in sorted(by_name.items()):
        kind = found[0][1].kind
        yield _family(name, kind, [each for each in found if each[1].kind == kind])


def _family(name: str, kind: Kind, found: Sequence[Found]) -> Metric:
    labels = sorted({label for _, series, _ in found for label, _ in series.labels})
    text, names = "Of a plugin.", ["pipeline", *labels]
    counter = CounterMetricFamily(name, text, labels=names)
    gauge = GaugeMetricFamily(name, text, labels=names)
    summary = SummaryMetricFamily(name, text, labels=names)
    for pipeline, series, measure in found:
        own = dict(series.labels)
        values = [pipeline, *(own.get(label, "") for label in labels)]
        match kind:
            case "count":
                counter.add_metric(values, measure.value)
            case "level":
                gauge.add_metric(values, measure.value)
            case "time":
                summary.add_metric(values, measure.times, measure.value)
    return {"count": counter, "level": gauge, "time": summary}[kind]

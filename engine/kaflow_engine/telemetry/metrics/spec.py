"""What a metric is: its name, its labels, and how it is read from the progress of a pipeline."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from kaflow_engine.telemetry.progress import Progress

Kind = Literal["counter", "gauge", "untyped", "histogram"]
Values = Iterable[tuple[tuple[str, ...], float]]
"""Values of the labels behind `pipeline`, and the value."""


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    """Behind `pipeline`, which all have."""
    values: Callable[[Progress], Values] = lambda at: ()
    """Of a histogram: none, because it is kept."""

"""The nodes of a file of another system, as the metrics of that system call them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["source", "query", "transform", "sink"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Where rows are counted."""

    kind: Literal["source", "transform", "sink"]
    name: str
    """Of a topic or source, a relation, or an output."""
    coming_in: bool = False
    """As they come into it, not as they leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMetrics:
    """One node."""

    labels: Mapping[str, str]
    """Of each of its metrics."""
    kind: Kind
    rows: Counted | None
    """Where its rows are counted; None: nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMetrics:
    """All metrics that a file wants besides; none: its front end has no metrics of its own."""

    prefix: str = ""
    """What the names of those of nodes begin with."""
    nodes: tuple[NodeMetrics, ...] = ()
    of_pipelines: Literal["sqlflow"] | None = None
    """The system by whose names its pipeline is measured as a whole."""

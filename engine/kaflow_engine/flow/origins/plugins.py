"""Settings of sources that packages offer, as a plan keeps them."""

from dataclasses import dataclass
from typing import Literal

from kaflow_engine.model.columns import Column

OptionParams = tuple[tuple[str, str | int | float | bool | None], ...]
"""What an author says to a plugin, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginParams:
    """Rows of a plugin that can give each range of them again."""

    type: str
    """`<namespace>.<name>`."""
    replays: Literal[True] = True
    bounded: bool
    options: OptionParams


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalledPluginParams:
    """Rows of a plugin that gives them once."""

    type: str
    replays: Literal[False] = False
    bounded: bool
    """Whether it ends for good."""
    options: OptionParams
    max_backlog: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PySparkParams:
    """Rows of a data source that is written for PySpark."""

    type: Literal["pyspark"] = "pyspark"
    format: str
    options: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    """As they are declared; none: the data source has a schema of its own."""
    bounded: bool
    """Whether it is read as a batch, once."""
    interval: int
    """In milliseconds."""
    max_backlog: int

"""What a plugin offers that is a kind of transform: the version of this contract is 3.

A transform is given rows, each by itself, and gives none, one or several for each. It keeps nothing
between calls: the same rows become the same, whenever and wherever that happens, for a batch that
runs again must deliver what it has delivered. What it learns from rows, later batches see.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from kaflow_engine.errors import SinkAway, SinkUnfit
from kaflow_engine.measures import Measures
from kaflow_engine.plugins.installed import TRANSFORMS, loaded
from kaflow_engine.plugins.metrics import PluginMetrics

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for columns only, and it takes long to load


class TransformAway(SinkAway):
    """What a transform needs does not answer now: the batch is run again, up to
    `retry_deadline`."""


class TransformUnfit(SinkUnfit):
    """A transform cannot take any row: someone must act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenTransform:
    """What a transform is opened with."""

    name: str
    """What queries call it."""
    options: BaseModel
    """What the author says, as the model of the kind has it."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What the configuration says of the plugin; secrets among it."""
    columns: Mapping[str, str]
    """The columns of the rows that come, with their DuckDB types."""
    results: Mapping[str, str]
    """The columns that it has to give, with their DuckDB types."""
    state: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """What was learned up to the batch before, by key: see `NewRows.learned`."""
    metrics: PluginMetrics = field(default_factory=lambda: PluginMetrics("", Measures()))
    """Records what it measures."""
    batch: int = 0
    """The number of the batch, the same when it runs again; 0: nothing is committed."""

    @property
    def logger(self) -> logging.Logger:
        """Where it can say what it does."""
        return logging.getLogger(f"kaflow.transform.{self.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRows:
    """What a transform makes of rows."""

    rows: "pa.Table"
    """With the columns `GivenTransform.results`, in any order and beside others; DuckDB casts their
    values."""
    of: "Sequence[int] | pa.Array | None" = None
    """For each row the place, from 0, of the one that it is made of, ascending; None: the first is
    made of the first, and so on."""
    failures: Mapping[int, str] = field(default_factory=dict[int, str])
    """Places of rows of which it makes nothing, and why: their records are dead letters."""
    learned: "Sequence[tuple[int, str, Any]]" = ()
    """What rows add to the state: the place of a row, a key, and a value as JSON has it. The kind
    merges them (`merge`), and the next batch sees the outcome. It follows from rows as all else
    does."""


class TransformPlugin(Protocol):
    """A transform as one task uses it, for one hand-over of rows."""

    def __call__(self, rows: "pa.Table") -> NewRows:
        """Transform rows, at least one, which have the columns `GivenTransform.columns`.

        However rows are cut into calls, they become the same. Where it raises, rows are given to it
        again, fewer at a time, until the one is found on which it fails: its record is a dead
        letter.

        Raises:
            TransformAway: It may heal; so may connections that break and time-outs of Python.
            TransformUnfit: Someone must act.
        """
        ...


class TransformPluginKind(Protocol):
    """One kind of transform; light to load, for planning asks it. It has no state.

    One whose transforms learn has a method `merge(key, before, added)`: it returns the value of a
    key, None for no value, of the one before and of what was added in whatever order. Parts may be
    merged first: a value that it returned may be among those added.

    One that wants to hear of batches that are committed has a method `finalizing(given)`: it
    returns what hears of them on the driver, a `Finalizing`, or None.
    """

    @property
    def options(self) -> type[BaseModel]:
        """What an author may say of a transform, as a pydantic model."""
        ...

    def columns(self, options: Any) -> Mapping[str, str | None]:
        """Return the columns that it adds or gives another DuckDB type; None: it takes the column
        away."""
        ...

    def open(self, given: GivenTransform) -> TransformPlugin:
        """Return what transforms rows."""
        ...


def transform_plugin(name: str) -> TransformPluginKind:
    """Return a kind of transform that a package offers, imported on first use.

    Raises:
        UnknownName: No package offers it; says which there are.
        ModelError: It cannot be imported, or is no kind of transform.
    """
    return loaded(TRANSFORMS, name)

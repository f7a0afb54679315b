"""What a plugin offers that sees rows before they leave: the version of this contract is 2.

A side output changes nothing: Arrow tables cannot be changed, and what it raises stops nothing.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pydantic import BaseModel

from kaflow_engine.measures import Measures
from kaflow_engine.plugins.installed import SIDE_OUTPUTS, loaded
from kaflow_engine.plugins.metrics import PluginMetrics

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for options only, and it takes long to load


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSideOutput:
    """What a side output is opened with."""

    output: str
    """The output whose rows it sees: a topic, a table, or `<kind of sink>:<name>`."""
    options: BaseModel
    """What the author says, as the model of the kind has it."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What the configuration says of the plugin; secrets among it."""
    columns: Mapping[str, str]
    """The columns of the rows, with their DuckDB types."""
    metrics: PluginMetrics = field(default_factory=lambda: PluginMetrics("", Measures()))
    """Records what it measures."""

    @property
    def logger(self) -> logging.Logger:
        """Where it can say what it does: in tasks, so on the machine of the task."""
        return logging.getLogger(f"kaflow.side_output.{self.output}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRows:
    """The rows that one task of a batch has for an output, in their order."""

    rows: "pa.Table"
    """`GivenSideOutput.columns`, and beside them `$key` (the bytes of the key), `$deleted` (all
    columns are NULL: what has this key goes), `$event_time` (epoch milliseconds),
    `$source_partition` and `$source_offset`."""
    batch: int
    """A batch that runs again has the number that it had."""


class SideOutputPlugin(Protocol):
    """A side output as the tasks of one process use it, one after the other."""

    def __call__(self, seen: SeenRows) -> None:
        """Look at rows, at least one, before they leave: the same ones again when a batch runs
        again. What it raises is logged and counted, and stops nothing; while it takes its time,
        rows wait."""
        ...


class SideOutputKind(Protocol):
    """One kind of side output; light to load, for planning asks it. It has no state."""

    @property
    def options(self) -> type[BaseModel]:
        """What an author may say of a side output, as a pydantic model."""
        ...

    def open(self, given: GivenSideOutput) -> SideOutputPlugin:
        """Return what looks at rows; it is opened once in each process that runs tasks."""
        ...


def side_output_plugin(name: str) -> SideOutputKind:
    """Return a kind of side output that a package offers, imported on first use.

    Raises:
        UnknownName: No package offers it; says which there are.
        ModelError: It cannot be imported, or is no kind of side output.
    """
    return loaded(SIDE_OUTPUTS, name)

"""Transforms: what makes rows of rows without SQL, one after the other and without state."""

from dataclasses import dataclass
from typing import Literal

from kaflow_engine.flow.origins.databases import AttachedParams
from kaflow_engine.flow.origins.plugins import OptionParams
from kaflow_engine.model.columns import Column

IN = "$in."
"""What stands before the name of a column in the projection that a transform takes."""
PASSED = "$"
"""What stands before the name of a record column that goes past a transform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptParams:
    """A script that is called with each row."""

    type: Literal["script"] = "script"
    language: Literal["javascript", "typescript"]
    """In which it was written."""
    text: str
    """As JavaScript."""
    timeout: int
    """Milliseconds that one row may take."""
    memory: int
    """Bytes that the script may have."""

    @property
    def decides(self) -> str:
        """What says which rows it makes: of other settings these are the same."""
        return f"{self.type}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupParams:
    """A table of a database, whose rows are found by some of their columns."""

    type: Literal["lookup"] = "lookup"
    table: AttachedParams
    left: bool
    """A row that finds nothing stays, with NULLs."""
    on: tuple[str, ...]
    """Columns of the table that equal `$on0`, `$on1` … of a row."""
    columns: tuple[tuple[str, str], ...]
    """What columns of the result are called, and the columns of the table that they are."""
    types: tuple[Column, ...]
    """Those of the table that are wanted: by which rows are found, and what is read of them."""
    refresh: int
    """Milliseconds for which an answer may be used again."""
    once: bool = False
    """A row that finds several stays one: what is asked is whether there is any."""

    @property
    def decides(self) -> str:
        """What its rows depend on: how and by what it looks up; a table may change at any time."""
        return f"{self.type}: {'LEFT' if self.left else 'INNER'} by {', '.join(self.on)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerParams:
    """An HTTP service that is asked about rows; its secrets are named, and no part of a plan."""

    type: Literal["handler"] = "handler"
    url: str
    headers: tuple[tuple[str, str], ...]
    secret_headers: tuple[tuple[str, str], ...]
    """Headers whose values are secrets, with the names of these."""
    secret: str | None
    """The name of what requests are signed with."""
    batch: int | None
    """Most rows of a request, which is then a list; None: a request is one row."""
    concurrency: int
    """How many requests a task has in flight."""
    envelope: Literal["none", "metadata"]
    """What a row is wrapped in, and its answer."""
    timeout: int
    """Milliseconds that an answer is waited for."""
    retry_for: int
    """Milliseconds that a request is sent again for, before its task fails."""
    op_column: str | None = None
    """The column that says what `op` of an envelope is; None: rows are inserts."""

    @property
    def decides(self) -> str:
        """What its rows depend on: a service may answer otherwise at any time, wherever it is."""
        return self.type

    @property
    def place(self) -> str:
        """The address as it may be shown: what follows `?` may be a secret."""
        return self.url.partition("?")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginTransformParams:
    """A kind of transform that a package offers."""

    type: Literal["plugin"] = "plugin"
    plugin: str
    """`<namespace>.<name>`."""
    options: OptionParams
    """What its author says to it, by name and in the order of the names."""

    @property
    def decides(self) -> str:
        """What says which rows it makes: its code may change at any time."""
        said = ", ".join(f"{name}={value!r}" for name, value in self.options)
        return f"{self.type}: {self.plugin}({said})"


TransformParams = ScriptParams | HandlerParams | LookupParams | PluginTransformParams
"""What is said of each kind of transform: a closed union, by `type`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """Append rows that a projection selects, each of which becomes none, one or several, in the
    task of the operator before it.

    Its rows have the columns `alias.<result>`, and `alias.<passed>` as they came.
    """

    type: Literal["transform"] = "transform"
    id: str
    inputs: tuple[str, ...]
    """The projection whose rows it takes."""
    alias: str
    name: str
    """What the author calls it."""
    columns: tuple[Column, ...]
    """What it is given of a row, in the order of the projection."""
    passed: tuple[Column, ...]
    """Record columns of the row, behind them in the projection: each row that is made of it has
    them, too."""
    results: tuple[Column, ...]
    params: TransformParams

    @property
    def is_table(self) -> bool:
        """Whether its rows are those of a table, which are replaced."""
        return False

    @property
    def rows(self) -> tuple[Column, ...]:
        """The columns of its rows, named `alias.column`."""
        return tuple(
            Column(f"{self.alias}.{c.name}", c.type) for c in (*self.results, *self.passed)
        )

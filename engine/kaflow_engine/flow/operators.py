"""The operators of a flow: a closed union, matched to its end wherever the kind decides.

Expressions are DuckDB SQL over quoted identifiers `"alias.column"` (see `sql.shape`). Edges are
ids: an operator names those whose rows it takes.
"""

from dataclasses import dataclass
from typing import Literal

from kaflow_engine.model.columns import Column

Role = Literal["dimension", "event"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Driving:
    """An edge from a Decode: each record that passes makes rows, and decides when they leave."""

    type: Literal["driving"] = "driving"
    input: str
    """The Decode."""
    alias: str
    columns: tuple[Column, ...]
    """Kept columns, named as in the topic."""
    filter: str | None
    key: str | None
    """SQL text of the key of the join that takes the rows; None where no join does."""
    needs: str | None
    """SQL over driving columns; where it is not true the row can never become complete."""
    raw: str | None
    """SQL: where true the original bytes travel along, for a dead letter; None: never."""
    ttl: int
    """Milliseconds that a row may wait."""
    emission: Literal["immediate", "smart", "final"]
    on_expiry: Literal["drop", "emit", "dead_letter"]
    reemit: bool
    """Rows are formed again when a dimension changes."""
    chain: int = 0
    """The number of the chain that its rows go through (see `flow.chains`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """An edge from an operator that makes rows."""

    type: Literal["rows"] = "rows"
    input: str
    key: str | None
    """SQL text of the key of the join that takes the rows; None where no join does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideParams:
    """One joined side of a keyed join."""

    input: str
    """The Decode whose rows are its records."""
    alias: str
    role: Role
    kind: Literal["LEFT", "INNER"]
    columns: tuple[Column, ...]
    """What is kept of a record, named as in the topic."""
    key: str
    """SQL text of the join key over `"alias.column"`."""
    filter: str | None
    ttl: int
    """Milliseconds that an event is kept."""
    lookup: Literal["current", "as_of"]
    keep: int
    """Milliseconds of versions kept under `as_of`."""
    tombstones: bool
    """A null value deletes the entry under the record's Kafka key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """The records of a topic as rows with columns."""

    type: Literal["decode"] = "decode"
    id: str
    source: int
    """Place among the sources of the flow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedJoin:
    """Joins over one key."""

    type: Literal["keyed_join"] = "keyed_join"
    id: str
    state: int
    """The name of its state: in change files, copies and snapshots."""
    rows: Driving | Rows
    """The rows that are joined."""
    before: tuple[Column, ...]
    """A row as it arrives: columns named `alias.column`."""
    sides: tuple[SideParams, ...]
    require: str | None
    """SQL over before and sides: true when the row may leave; None when only INNER sides decide."""

    @property
    def events(self) -> tuple[int, ...]:
        """The event sides, as indices of `sides`."""
        return tuple(i for i, side in enumerate(self.sides) if side.role == "event")

    @property
    def inner(self) -> tuple[int, ...]:
        """The INNER sides."""
        return tuple(i for i, side in enumerate(self.sides) if side.kind == "INNER")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnest:
    """Lists that become rows, side by side: one row for each place of the longest one."""

    where: str | None
    """The part of WHERE that a row must pass before."""
    lists: tuple[tuple[str, str], ...]
    """The name of the column that holds an element, and SQL of the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The rest of WHERE and the select list; it runs in the task of the operator before it."""

    type: Literal["project"] = "project"
    id: str
    rows: Driving | Rows
    where: str | None
    """Behind what is unnested."""
    columns: tuple[tuple[Column, str], ...]
    """What is selected, with its SQL."""
    unnests: tuple[Unnest, ...] = ()
    """First, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Accounts for the rows of driving records that part before they are settled."""

    type: Literal["ledger"] = "ledger"
    id: str
    state: int
    """The name of its state: in change files, copies and snapshots."""
    inputs: tuple[str, ...]
    """Joins that note what became of rows, and the projection whose forced rows it judges."""


Operator = Decode | KeyedJoin | Project | Ledger

TakesRows = KeyedJoin | Project
"""Operators with an edge `rows`: the operator before them in the same task hands rows to them, or a
Decode sends them."""

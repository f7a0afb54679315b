"""The edges of a flow: along which records or rows come to an operator."""

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
    """Milliseconds that a row may wait; under `on_match` grace is among them."""
    emission: Literal["immediate", "smart", "on_match", "final"]
    on_expiry: Literal["drop", "emit", "dead_letter"]
    reemit: bool
    """Rows are formed again when a dimension changes."""
    waits: bool = True
    """A row waits where an INNER side has no match; else it goes nowhere."""
    chain: int = 0
    """The number of the chain that its rows go through (see `flow.chains.chain`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """An edge from an operator that makes rows."""

    type: Literal["rows"] = "rows"
    input: str
    key: str | None
    """SQL text of the key of the join that takes the rows; None where no join does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How rows of groups meet events: as driving records do, for as long as this says."""

    ttl: int
    """Milliseconds that a row may wait, or meet events that come later."""
    emission: Literal["immediate", "on_match"]
    on_expiry: Literal["drop", "emit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """How far an event may be from the driving record that it matches, in milliseconds."""

    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideParams:
    """One joined side of a keyed join."""

    input: str
    """The Decode whose rows are its records, or the table that is looked up; or the groups whose
    rows, which leave once, are its events."""
    alias: str
    role: Role
    kind: Literal["LEFT", "INNER", "ANTI"]
    """ANTI: what matches an event of it makes no row."""
    columns: tuple[Column, ...]
    """What is kept of a record, named as in the topic."""
    key: str
    """SQL text of the join key over `"alias.column"`."""
    filter: str | None
    ttl: int
    """Milliseconds that an event is kept; with `within` grace is among them."""
    lookup: Literal["current", "as_of", "before"]
    """`before`: as `current`, without what the driving record changes itself."""
    keep: int
    """Milliseconds of versions kept under `as_of`."""
    tombstones: bool
    """A null value deletes the entry under the record's Kafka key."""
    within: Within | None = None
    """Which events match; None: where the later one comes within the TTL of the earlier one."""
    rows: tuple[Column, ...] | None = None
    """Of a table of which all rows with the join key match: the columns of its own key, which tells
    these rows apart; None: there is one row for each join key."""

    @property
    def parts(self) -> bool:
        """Whether a row that meets it becomes several."""
        return self.role == "event" or self.rows is not None

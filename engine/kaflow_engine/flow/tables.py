"""The operators of a flow that are tables: they keep rows by key, and their changes leave; and what
makes append rows of changes."""

from dataclasses import dataclass
from typing import Literal

from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.model.columns import Column

UNKNOWN_OPERATION = "unknown operation "
"""How the error of a record begins that does to its row what nothing is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialize:
    """A table: the last row of each key, behind an exchange by the key; its changes leave.

    Its rows are those that it takes: of a Decode the columns of the edge, named `alias.column`.
    """

    type: Literal["materialize"] = "materialize"
    id: str
    state: int
    """The name of its state: in change files, copies and snapshots."""
    rows: Driving | Rows
    """Records; append rows, the last one of a key counts; or changes of a table, which gets another
    key."""
    columns: tuple[Column, ...]
    """Named `alias.column`."""
    keys: tuple[tuple[Column, str], ...]
    """The columns of the key, and their SQL over the rows. A row in which one is NULL is dropped
    and counted."""
    deletes: tuple[str, ...] | None
    """SQL of the key over the `_key` of a record without value, which deletes a row; None: such
    records are dropped."""
    operation: str | None
    """SQL of a text over the rows: `d` deletes; None: no row does."""
    each: bool
    """Every change leaves; else one for each key and batch."""
    retain: int | None
    """Milliseconds after which a row that nothing changed is deleted; None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSide:
    """One side of a join of two tables."""

    input: str
    """The operator whose changes it takes."""
    columns: tuple[Column, ...]
    """Of its rows: named `alias.column`."""
    key: str | None
    """SQL text of the join key over them: a value without one meets nothing."""
    preserved: bool
    """A row that meets nothing leaves with NULLs."""
    filter: str | None = None
    """SQL over the rows that come: one that does not pass is none. Of groups, HAVING."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableJoin:
    """A join of two tables behind an exchange by the join key; its changes leave.

    Its rows have the columns of both sides.
    """

    type: Literal["table_join"] = "table_join"
    id: str
    state: int
    """The name of its state: in change files, copies and snapshots."""
    left: TableSide
    right: TableSide
    key: Literal["join", "left", "right", "pair"]
    """What tells its rows apart: the join key, which is the key of both sides; the key of the row
    of one side; or both keys."""
    each: bool
    """Every change leaves; else one for each key and batch."""
    chain: int | None = None
    """The number of its chain, where its left side belongs to another one; None: that of its left
    side."""

    @property
    def sides(self) -> tuple[TableSide, TableSide]:
        """Both sides, the left one first."""
        return self.left, self.right


APPEND_OP, APPEND_TIME, APPEND_KEY = "$op", "$time", "$key"
"""Columns of append rows, of runs the event time too, that no author can name: the operation, the
event time, and where it is read the key that a row has in its table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Changes of a table as append rows, in the task of the table: each row that comes, with `i` or
    `u`, and where they are asked for each row that goes, with `d`.

    Its rows have the columns `alias.<column>`, `alias.$op` and `alias.$time`.
    """

    type: Literal["append"] = "append"
    id: str
    inputs: tuple[str, ...]
    """The projection whose rows it takes."""
    alias: str
    columns: tuple[Column, ...]
    """As the projection selects them."""
    deletes: bool
    """Rows that go leave, too."""

    @property
    def is_table(self) -> bool:
        """Whether its rows are those of a table, which are replaced."""
        return False

    @property
    def rows(self) -> tuple[Column, ...]:
        """The columns of its rows, named `alias.column`."""
        beside = (Column(APPEND_OP, "VARCHAR"), Column(APPEND_TIME, "TIMESTAMP"))
        return tuple(Column(f"{self.alias}.{c.name}", c.type) for c in (*self.columns, *beside))

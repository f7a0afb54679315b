"""The operators of a flow: a closed union, matched to its end wherever the kind decides.

Expressions are DuckDB SQL over quoted identifiers `"alias.column"` (see `sql.shape`). Edges are
ids: an operator names those whose rows it takes.
"""

from dataclasses import dataclass
from typing import Literal

from kaflow_engine.flow.edges import Driving, Rows, SideParams, Waiting
from kaflow_engine.flow.tables import Append, Materialize, TableJoin
from kaflow_engine.flow.timed import Runs, Throttle
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.flow.windows import Window
from kaflow_engine.model.columns import Column

PLACE = "_place"
"""What queries call the place of an element of an unnested list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """The records of a topic as rows with columns, by one of its clocks."""

    type: Literal["decode"] = "decode"
    id: str
    source: int
    """Place among the sources of the flow."""
    clock: int = 0
    """Which clock of the source; the operator of the first one decodes for the others, too."""


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
    chain: int | None = None
    """The number of its chain, where rows of groups or transforms come to it; None: that of its
    rows."""
    waiting: Waiting | None = None
    """How rows of groups wait for events; None: they look up what is there, or are of records."""
    delay: int = 0
    """Milliseconds that its watermark is behind that of the chain, as rows of groups are."""
    time: str | None = None
    """SQL over before and sides: an event time in epoch milliseconds, which rows that leave have
    where it is greater than that of their driving record; None: they have that one."""

    @property
    def events(self) -> tuple[int, ...]:
        """The event sides, as indices of `sides`."""
        return tuple(i for i, side in enumerate(self.sides) if side.role == "event")

    @property
    def parting(self) -> tuple[int, ...]:
        """The sides of which a row may meet several rows, each of which is a member then."""
        return tuple(i for i, side in enumerate(self.sides) if side.parts)

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

    @property
    def place(self) -> str:
        """The name of the column that holds the place of an element, from 1."""
        return f"{self.lists[0][0].partition('.')[0]}.{PLACE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The rest of WHERE and the select list, for a sink or an aggregate; it runs in the task of the
    operator before it.

    For an aggregate it selects the grouping values, then the arguments, in the order and with the
    names that the aggregate gives them.
    """

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulator:
    """A column of a group that takes in rows without keeping them."""

    column: Column
    first: str
    """SQL over the arguments: the column of a group of that one row."""
    merge: str
    """SQL, an aggregate over the accumulators of some rows in their order, with or without FILTER;
    with OVER behind it, it runs along the rows."""
    taken: str | None = None
    """As `first`, of a row that is taken away; None: no row ever is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculated:
    """A result of a group: what one call of an aggregate function gives."""

    column: Column
    sql: str
    """Over the accumulators; or, where rows are kept, an aggregate over the arguments of all rows
    of the group in their order."""
    keeps: bool
    """Whether the rows of the group are kept for it."""


Leaves = Literal["changes", "closed", "first", "ended"]
"""What leaves a group: its changes, as the result is a table; its row once its window is closed;
the row that begins it, before any that equals it; or its row once its window has ended, and what
late rows change of it until it is closed, as a table. The two in the middle are append rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Rows in groups, and what is calculated of each group.

    Its rows have the columns `alias.<key>`, `alias.<result>` and, of a window,
    `alias.window_start` and `alias.window_end` (TIMESTAMP, UTC); `alias._time` where it is `timed`.
    """

    type: Literal["aggregate"] = "aggregate"
    id: str
    state: int
    """The name of its state: in change files, copies and snapshots."""
    inputs: tuple[str, ...]
    """The projections whose rows it takes, those of a union in the order of its branches, and the
    ledgers that send on those of them which they judge."""
    alias: str
    keys: tuple[Column, ...]
    """The grouping values; none: all rows are one group."""
    window: Window | None
    arguments: tuple[Column, ...]
    """What accumulators and calls read of a row."""
    accumulators: tuple[Accumulator, ...]
    results: tuple[Calculated, ...]
    leaves: Leaves
    each: bool
    """Every change of a table leaves; else one for each group and batch."""
    grace: int
    """Milliseconds behind its end after which a window is closed."""
    on_late: Literal["drop", "dead_letter"]
    delay: int
    """Milliseconds that its watermark is behind that of the chain."""
    ttl: int | None
    """Milliseconds after which a group without a new row is forgotten; None: never."""
    retracts: bool = False
    """It takes changes of a table: rows come and are taken away."""
    shard: str | None = None
    """SQL over the grouping values, named as its entry names them: the text by which a group has
    its place, that of the first shard where it is NULL; None: the text of all of them."""
    exchange: bool = True
    """Rows travel to the places of their groups; else they are made there."""
    chain: int | None = None
    """The number of its chain, where its rows come from several others; None: that of its rows."""
    timed: bool = False
    """The event time of a group is a column of its row."""
    retain: int | None = None
    """Milliseconds for which operators that read windows as a table see one after it was closed;
    None: for ever."""

    @property
    def is_table(self) -> bool:
        """Whether its rows are those of a table, which are replaced."""
        return self.leaves in ("changes", "ended")


InChain = (
    KeyedJoin
    | Project
    | Ledger
    | Aggregate
    | Materialize
    | TableJoin
    | Append
    | Throttle
    | Runs
    | Transform
)
"""Operators that rows go through behind a Decode."""

Operator = Decode | InChain

TakesRows = KeyedJoin | Project | Materialize
"""Operators with an edge `rows`: the operator before them in the same task hands rows to them, or a
Decode sends them."""

KeepsState = KeyedJoin | Ledger | Aggregate | Materialize | TableJoin | Throttle | Runs

Gathers = Aggregate | Runs | Append | Transform
"""Operators that take rows as a projection selects them, and make other rows of them."""

MakesChanges = Aggregate | Materialize | TableJoin
"""Operators that are tables: their changes leave; of an aggregate where `is_table`."""

"""The workspace of one join in one task: a DuckDB connection with the tables below.

r        the rows of this join with `rn` and `pos`, the place of what triggered them: 0 is before
         all records of the batch, equal triggers share a place
d        driving rows, new (did > 0) and stored (did < 0, pos 0)
e<i>     records of event side i, new and stored (pos 0)
p<i>     pairs of a driving row and a record of side i that exist since place `ppos`
c        combinations of a driving row with a record or NULL of each event side, formed at place q0
v<j>     versions of dimension side j
f        combinations at the places at which they are looked at, with all sides: several rows each
         where several rows of a side have the join key
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from kaflow_engine.flow.chains.chain import Chain, chain_of
from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import readers_of, source_of
from kaflow_engine.flow.operators import KeyedJoin, Ledger
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.operators.handover import HandOn
from kaflow_engine.operators.join.identity import (
    Identity,
    events_of_groups,
    identity_of,
    meets_events,
)
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.operators.rows.task import NEVER_YET, BatchContext
from kaflow_engine.operators.watermark import END

NEVER = 1 << 62
"""A place after all others."""

DRIVERS = pa.schema(
    [
        pa.field("did", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("pos", pa.int64()),
        pa.field("fresh", pa.bool_()),
        pa.field("doomed", pa.bool_()),
        pa.field("hopeless", pa.bool_()),
        pa.field("ts", pa.int64()),
        pa.field("due", pa.int64()),
        pa.field("d_batch", pa.int64()),
        pa.field("d_time", pa.int64()),
        pa.field("d_part", pa.int64()),
        pa.field("d_off", pa.int64()),
        pa.field("members", pa.list_(pa.int64())),
        pa.field("raw", pa.string()),
        pa.field("d", pa.string()),
        pa.field("flags", pa.int64()),
        pa.field("waited", pa.int64()),
        pa.field("counted", pa.bool_()),
        pa.field("forced", pa.bool_()),
    ]
)
"""Table d. `fresh`: its own record triggered it; `doomed`: can never become complete; `hopeless`:
must not wait; `waited`: how many rows of it waited before this batch; `forced`: leaves with what
there is."""


@dataclass(frozen=True, kw_only=True)
class JoinWorkspace:
    """What a join works with."""

    con: duckdb.DuckDBPyConnection
    flow: Flow
    join: KeyedJoin
    hand_on: HandOn
    """Takes the rows that leave."""
    batch: BatchContext
    state: StepState
    early: bool = False
    """It takes rows of phase 0: they meet what had not expired in the batch before."""
    moved: frozenset[int] = frozenset()
    """The sides of which the batch has records here."""
    lookups: Counter[tuple[int, bool]] = field(default_factory=Counter[tuple[int, bool]])
    """Rows that left, by side and whether they have a match of it."""

    @property
    def events(self) -> tuple[int, ...]:
        """Event sides."""
        return self.join.events

    @cached_property
    def chain(self) -> Chain:
        """The chain that the join belongs to."""
        return chain_of(self.flow, self.join)

    @property
    def driving(self) -> Driving:
        """How driving records become rows."""
        return self.chain.driving

    @property
    def horizon(self) -> int:
        """The operator's own watermark, or a time before all others."""
        chain = NEVER_YET if self.early else self.batch.horizon(self.chain.number)
        return chain if chain >= END else chain - self.join.delay

    @cached_property
    def topic(self) -> TopicParams:
        """The topic of driving records."""
        return source_of(self.flow, self.driving)

    @property
    def ledger(self) -> Ledger | None:
        """Accounts for rows that part; None where they do not."""
        return self.chain.ledger

    @cached_property
    def takes_groups(self) -> bool:
        """Rows of groups rest in a join of the chain, or meet events that do."""
        joins = self.chain.joins
        return meets_events(self.chain) or any(events_of_groups(self.flow, e) for e in joins)

    @property
    def of_groups(self) -> bool:
        """Its driving rows are those of groups or transforms, and no records."""
        return bool(self.chain.below)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Dimension sides."""
        return tuple(i for i, side in enumerate(self.join.sides) if side.role == "dimension")

    @property
    def several(self) -> tuple[int, ...]:
        """The dimension sides of which all rows with the join key match."""
        return tuple(i for i in self.dimensions if self.join.sides[i].rows is not None)

    @property
    def final(self) -> bool:
        """One decision per driving record."""
        return self.driving.emission == "final"

    @property
    def anti(self) -> tuple[int, ...]:
        """The sides of which no match may be there for a row to leave."""
        return tuple(i for i, side in enumerate(self.join.sides) if side.kind == "ANTI")

    @property
    def waits_keyless(self) -> bool:
        """A row without a key waits until its time is up, although nothing can match it."""
        if self.driving.emission == "on_match":
            return bool(self.events) and not self.join.inner
        return self.final

    @property
    def can_wait(self) -> bool:
        """Rows may wait here for another side."""
        if self.final or not self.driving.waits:
            return False
        return self.join.require is not None or bool(self.join.inner)

    @property
    def retains(self) -> bool:
        """Driving records are kept for later matches."""
        return bool(self.events) or self.final

    @property
    def keeps_matches(self) -> bool:
        """Matches are kept with their driving record."""
        return len(self.events) > 1 or (self.final and bool(self.events))

    @cached_property
    def identity(self) -> Identity:
        """What tells driving rows of one key apart."""
        return identity_of(self.flow, self.join)

    @cached_property
    def of_events(self) -> tuple[int, ...]:
        """The event sides whose events are rows of groups."""
        return events_of_groups(self.flow, self.join)

    @cached_property
    def last(self) -> bool:
        """No join takes the rows that leave."""
        readers = readers_of(self.flow, self.join.id)
        return not any(isinstance(reader, KeyedJoin) for reader in readers)

    def run(self, sql: str) -> None:
        """Run a statement."""
        self.con.execute(sql)

    def table(self, sql: str) -> pa.Table:
        """Run a query."""
        return self.con.execute(sql).to_arrow_table()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query; for few rows."""
        return self.con.execute(sql).fetchall()

    def load(self, name: str, table: pa.Table) -> None:
        """Make an Arrow table a temporary table."""
        self.build(name, "SELECT * FROM incoming", table)

    def build(self, name: str, sql: str, incoming: pa.Table | None = None) -> None:
        """Make the result of a query, which may read `incoming`, a temporary table.

        DuckDB finds `incoming` by the name of this method's argument, which is cheaper than a view.
        """
        self.con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {sql}")

    def keys(self, sql: str) -> list[bytes]:
        """Return the one column of a query of join keys, sorted, so that state is read in order."""
        keys: Sequence[bytes] = self.table(sql).column(0).to_pylist()
        return sorted(keys)

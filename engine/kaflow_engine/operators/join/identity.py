"""What tells rows apart that rest in a join: their records, or, of rows of groups, numbers.

Several rows of groups may have one record, or none. Those that come to one join key in one batch
are numbered in their order.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.flow.chains.chain import Chain, chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import joins_before, operator_of
from kaflow_engine.flow.operators import Decode, KeyedJoin
from kaflow_engine.operators.rows.schemas import DRIVING, MEMBERS, ORIGIN, TRIGGER
from kaflow_engine.state.binary_columns import Items

MEMBER = 4
"""Numbers of a member: batch, order time, partition, offset."""
_BYTES = 12
"""What of a member, or of a record, a suffix has: partition and offset."""
PARTITION, OFFSET, NUMBER = range(3)
"""Members that driving rows of groups have of their own, before those of earlier joins: those of
their record, and their number. An event of groups has its number last."""
_OWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What tells driving rows under one join key apart, in the suffixes of their entries: their
    record, or batch and number of rows of groups; then events of earlier joins."""

    passed: int
    """How many members earlier joins of the chain have given them."""
    of_groups: bool

    @property
    def width(self) -> int:
        """Bytes of a suffix."""
        return _BYTES * (1 + self.passed)

    def own(self, lists: pa.ListArray, place: int) -> Items:
        """Return one of the members that rows of groups have of their own.

        Args:
            lists: All members of each row.
            place: PARTITION, OFFSET or NUMBER.
        """
        ends = lists.offsets.to_numpy()[1:]
        found = lists.values.take(pa.array(ends - MEMBER * self.passed - _OWN + place))
        return np.asarray(found.to_numpy())

    def earlier(self, lists: pa.ListArray) -> Items:
        """Return the members that earlier joins have given, those of each row side by side."""
        count = MEMBER * self.passed
        if not count:
            return np.zeros((len(lists), 0), np.int64)
        places = lists.offsets.to_numpy()[1:, None] - count + np.arange(count)
        found = lists.values.take(pa.array(places.reshape(-1))).to_numpy()
        return np.asarray(found).reshape(len(lists), count)


def identity_of(flow: Flow, join: KeyedJoin) -> Identity:
    """Return what tells the driving rows of a join apart."""
    passed = sum(len(each.parting) for each in joins_before(flow, join))
    return Identity(passed=passed, of_groups=meets_events(chain_of(flow, join)))


def meets_events(chain: Chain) -> bool:
    """Tell whether the driving rows of a chain are those of groups, and events are joined to
    them."""
    return bool(chain.below) and any(join.events for join in chain.joins)


def events_of_groups(flow: Flow, join: KeyedJoin) -> tuple[int, ...]:
    """Return the event sides of a join whose events are rows of groups."""
    sides = ((i, operator_of(flow, join.sides[i].input)) for i in join.events)
    return tuple(i for i, made in sides if not isinstance(made, Decode))


def numbered(join: KeyedJoin, rows: pa.Table, *, drives: bool, sides: Collection[int]) -> pa.Table:
    """Return rows of schema EXCHANGE of which those of groups have their numbers as members.

    Args:
        join: The join that takes them.
        rows: All of one batch.
        drives: Driving rows of its chain are those of groups, which have numbers from its first
            join on.
        sides: Those whose events are rows of groups.
    """
    own = f"kind = {DRIVING}" if drives and join.chain is not None else "FALSE"
    members = "coalesce(members, []::BIGINT[])"
    order = ", ".join((*TRIGGER, *ORIGIN, "members"))
    number = f"row_number() OVER (PARTITION BY kind, side, key ORDER BY {order})"
    found = query(
        f"SELECT CASE WHEN {own} THEN list_concat({members}, [d_part, d_off, number]) "
        f"WHEN kind <> {DRIVING} AND list_contains({[*sides]}::INTEGER[], side) "
        f"THEN list_append({members}, number) ELSE members END AS members "
        f"FROM (SELECT *, {number} AS number FROM (SELECT *, row_number() OVER () AS place "
        "FROM rows)) ORDER BY place",
        rows=rows,
    )
    at = rows.column_names.index("members")
    return rows.set_column(at, pa.field("members", MEMBERS), found["members"].cast(MEMBERS))

"""What the records of a topic are to a flow: driving records of chains, and records of sides."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.chains.names import chain_name
from kaflow_engine.flow.decodes import decoded_by, decodes_of
from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import readers_of, sides_of
from kaflow_engine.flow.operators import Decode, KeyedJoin, TakesRows
from kaflow_engine.flow.tables import Materialize
from kaflow_engine.operators.row_errors.dead_letters import clock_letters_name

ELSEWHERE = -1
"""In place of a chain: records that are redriven for another clock of their topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The roles of one topic by one of its clocks; each sees every record, but those that are
    redriven for one chain or another clock."""

    decode: Decode
    readers: Mapping[Driving, tuple[TakesRows, ...]]
    """Who takes the rows of each edge of the chains that the topic drives: a chain of tables may
    have several."""
    sides: tuple[tuple[KeyedJoin, int], ...]
    """The joins that it is a side of, and which one."""
    redriven: Mapping[int, int]
    """Records, by `rn`, that only one chain sees, and its number."""

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.readers) + len(self.sides)

    @property
    def chains(self) -> Mapping[int, tuple[Driving, ...]]:
        """The edges of each chain that the topic drives, by its number."""
        found: dict[int, tuple[Driving, ...]] = {}
        for edge in self.readers:
            found[edge.chain] = (*found.get(edge.chain, ()), edge)
        return found

    def table_of(self, edge: Driving) -> Materialize | None:
        """Return the table whose rows the records of an edge are; None: they are those of none."""
        first = self.readers[edge][0]
        return first if isinstance(first, Materialize) else None

    def hidden(self, edge: Driving | None) -> pa.Array:
        """Return the `rn` of records that a chain does not see; None: that no side sees."""
        number = None if edge is None else edge.chain
        found = [row for row, only in self.redriven.items() if only != number]
        return pa.array(found, pa.int64())

    def seen(self, edge: Driving | None, rows: pa.Table) -> pa.Table:
        """Return those of rows with `rn` that a chain sees; None: that sides see."""
        return without(rows, self.hidden(edge)) if self.redriven else rows


def roles_of(flow: Flow, source: int, meant: Mapping[int, str]) -> tuple[Roles, ...]:
    """Return the roles of a topic by each of its clocks.

    Args:
        flow: What runs.
        source: Which topic of it.
        meant: The names of chains, or clocks, for which records are redriven, by `rn`; a name that
            is none of a chain which the topic drives is no reason to hide the record.
    """
    decodes = decodes_of(flow, source)
    readers = {decode: _readers(flow, decode) for decode in decodes}
    redriven: dict[int, int] = {}
    clocks: dict[str, Decode] = {}
    if meant:
        driven = {edge.chain for each in readers.values() for edge in each}
        names = {
            chain_name(flow, chain): chain.number
            for chain in chains(flow)
            if chain.number in driven
        }
        redriven = {row: names[name] for row, name in meant.items() if name in names}
        clocks = {clock_letters_name(decoded_by(flow, decode)): decode for decode in decodes}
    return tuple(
        Roles(
            decode=decode,
            readers=readers[decode],
            sides=sides_of(flow, decode.id),
            redriven={
                **redriven,
                **{
                    row: ELSEWHERE
                    for row, name in meant.items()
                    if clocks.get(name, decode) is not decode
                },
            },
        )
        for decode in decodes
    )


def _readers(flow: Flow, decode: Decode) -> dict[Driving, tuple[TakesRows, ...]]:
    found: dict[Driving, tuple[TakesRows, ...]] = {}
    for reader in readers_of(flow, decode.id):
        if isinstance(reader.rows, Driving):
            found[reader.rows] = (*found.get(reader.rows, ()), reader)
    return found


def without(rows: pa.Table, numbers: pa.Array) -> pa.Table:
    """Return rows without those of the given `rn`."""
    return rows.filter(pc.invert(pc.is_in(rows["rn"], numbers))) if len(numbers) else rows

"""Records that fail: taken out of all roles, of those by one clock, or of one chain, with their
dead letters and counts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.chains.chain import chain_of
from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import letter_side, refusal, source_letters
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.source.decode import Intake
from kaflow_engine.operators.source.roles import ELSEWHERE, Roles


@dataclass(frozen=True, slots=True, kw_only=True)
class ByClock:
    """The records of a topic by one of its clocks, and what they are to the flow."""

    intake: Intake
    roles: Roles


class Failures:
    """The records of one topic that fail.

    Args:
        flow: What runs.
        clocks: The records by each clock of the topic.
    """

    def __init__(self, flow: Flow, clocks: Sequence[ByClock]) -> None:
        self._flow, self._clocks = flow, clocks
        self._topic = flow.sources[clocks[0].roles.decode.source]
        self._records = clocks[0].intake.records
        self._chains = _edges_of_chains(clocks)
        self._everywhere: dict[int, BadRecord] = {}
        self._by_chain: dict[Driving, Sequence[BadRecord]] = {}
        for each in clocks:
            self.add(each.intake.bad)
            if len(clocks) == 1:
                self.add(each.intake.untimed)

    def __len__(self) -> int:
        """How many are taken out of all roles."""
        return len(self._everywhere)

    @property
    def roles(self) -> int:
        """How many roles the topic has, by all of its clocks."""
        return sum(each.roles.count for each in self._clocks)

    @property
    def numbers(self) -> pa.Array:
        """The `rn` of those that are taken out of all roles."""
        return pa.array(list(self._everywhere), pa.int64())

    def add(self, bad: Iterable[BadRecord]) -> None:
        """Take records out of all roles."""
        for record in bad:
            self._everywhere.setdefault(record.row, record)

    def set_of_chain(self, edge: Driving, bad: Sequence[BadRecord]) -> None:
        """Say which records of an edge are taken out of its chain only."""
        self._by_chain[edge] = bad

    def letters(self) -> pa.Table:
        """Return dead letters, schema EXCHANGE, where the topic has them.

        Raises:
            SourceError: The topic has `on_error: fail`.
        """
        topic = self._topic
        found = [(bad, self._meant(bad.row)) for bad in self._everywhere.values()]
        for each in self._clocks:
            about = target_of(self._flow, each.roles.decode)
            found += [(bad, about) for bad in self._untimed(each).values()]
        for number in self._chains:
            about = self.side_of(number)
            found += [(bad, about) for bad in self._of_chain(number).values()]
        found.sort(key=lambda one: one[0].row)
        if not found or topic.on_error == "skip":
            return EXCHANGE.empty_table()
        records = self._records.take([bad.row for bad, _ in found])
        if topic.on_error == "fail":
            partition, offset = (records[name][0].as_py() for name in ("partition", "offset"))
            raise refusal(topic, partition, offset, found[0][0])
        sides = [about for _, about in found]
        return source_letters(self._flow, topic, records, [bad for bad, _ in found], sides)

    def side_of(self, number: int) -> int | None:
        """Return the `side` of dead letters about a chain (see `letter_side`)."""
        each, edge = self._chains[number][0]
        return letter_side(self._flow, chain_of(self._flow, each.roles.readers[edge][0]))

    def lost(self, number: int) -> frozenset[int]:
        """Return the `rn` of records that a chain loses, and not all roles do."""
        untimed = (
            row
            for each, edge in self._chains[number]
            for row in self._untimed(each).keys() - {*each.roles.hidden(edge).to_pylist()}
        )
        return frozenset((*self._of_chain(number), *untimed))

    def count(self, counters: Counter[str]) -> None:
        """Count all records: in each chain that the topic drives, or else once.

        What tables do with null values is for them to count.
        """
        count = self._records.num_rows
        skips = self._topic.on_error == "skip"
        for number, edges in self._chains.items():
            unseen = [{*each.roles.hidden(edge).to_pylist()} for each, edge in edges]
            hidden = set[int].intersection(*unseen)
            (first, edge), *_ = edges
            counters["read"] += count - len(hidden)
            if first.roles.table_of(edge) is None:
                counters["skipped"] += _seen(first.intake.nulls, hidden)
            bad = {*self._everywhere, *self.lost(number)} - hidden
            counters["skipped" if skips else "dead_letter"] += len(bad)
        of_sides = "skipped_side" if skips else "side_dead_letters"
        looked_up = [each for each in self._clocks if not each.roles.readers]
        counters[of_sides] += len({row for each in looked_up for row in self._untimed(each)})
        if not self._chains:
            counters["side_read"] += count
            counters[of_sides] += len(self)
            nulls = [e.intake.nulls for e in self._clocks if not e.intake.topic.dimension]
            counters["skipped_side"] += max(map(len, nulls), default=0)

    def _of_chain(self, number: int) -> Mapping[int, BadRecord]:
        """Return the records that fail in the roles of one chain only, by `rn`, each once."""
        bad: dict[int, BadRecord] = {}
        for _, edge in self._chains[number]:
            for record in self._by_chain.get(edge, ()):
                bad.setdefault(record.row, record)
        return bad

    def _untimed(self, by_clock: ByClock) -> Mapping[int, BadRecord]:
        """Return the records that have no event time by one of several clocks, by `rn`, and that
        its roles would see."""
        roles, chains = by_clock.roles, by_clock.roles.chains
        unseen = {row for row, only in roles.redriven.items() if only not in chains}
        return {
            bad.row: bad
            for bad in by_clock.intake.untimed
            if bad.row not in self._everywhere and bad.row not in unseen
        }

    def _meant(self, row: int) -> int | None:
        """Return the `side` of a dead letter about a record that is redriven for some roles alone;
        None: it is for all."""
        for each in self._clocks:
            only = each.roles.redriven.get(row)
            if only is None and len(self._clocks) > 1:
                others = (other.roles.redriven.get(row) for other in self._clocks)
                return target_of(self._flow, each.roles.decode) if ELSEWHERE in others else None
            if only is not None and only != ELSEWHERE:
                return self.side_of(only)
        return None


def _edges_of_chains(
    clocks: Sequence[ByClock],
) -> Mapping[int, Sequence[tuple[ByClock, Driving]]]:
    """Return the edges of each chain that a topic drives, by whatever clock."""
    found: dict[int, list[tuple[ByClock, Driving]]] = {}
    for each in clocks:
        for number, edges in each.roles.chains.items():
            found.setdefault(number, []).extend((each, edge) for edge in edges)
    return found


def _seen(numbers: pa.Array, hidden: set[int]) -> int:
    """Return how many of the records with these `rn` are not hidden."""
    if not hidden:
        return len(numbers)
    unseen = pc.is_in(numbers, pa.array(list(hidden), pa.int64()))
    return len(numbers) - (pc.sum(unseen).as_py() or 0)

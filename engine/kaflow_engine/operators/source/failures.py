"""Records that fail: taken out of all roles or of one chain, with their dead letters and counts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from kaflow_engine.flow.chains.chain import chain_of
from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import letter_side, refusal, source_letters
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.source.decode import Intake
from kaflow_engine.operators.source.roles import Roles


class Failures:
    """The records of one topic that fail."""

    def __init__(self, flow: Flow, intake: Intake, roles: Roles) -> None:
        self._flow, self._intake, self._roles = flow, intake, roles
        self._everywhere: dict[int, BadRecord] = {}
        self._by_chain: dict[Driving, Sequence[BadRecord]] = {}
        self.add(intake.bad)

    def __len__(self) -> int:
        """How many are taken out of all roles."""
        return len(self._everywhere)

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
        topic, only = self._intake.topic, self._roles.redriven
        found = [(bad, only.get(bad.row)) for bad in self._everywhere.values()]
        for number in self._roles.chains:
            found += [(bad, number) for bad in self.of_chain(number).values()]
        found.sort(key=lambda one: one[0].row)
        if not found or topic.on_error == "skip":
            return EXCHANGE.empty_table()
        records = self._intake.records.take([bad.row for bad, _ in found])
        if topic.on_error == "fail":
            partition, offset = (records[name][0].as_py() for name in ("partition", "offset"))
            raise refusal(topic, partition, offset, found[0][0])
        known = {number: self.side_of(number) for number in {number for _, number in found}}
        sides = [known[number] for _, number in found]
        return source_letters(self._flow, topic, records, [bad for bad, _ in found], sides)

    def of_chain(self, number: int) -> Mapping[int, BadRecord]:
        """Return the records that are taken out of one chain only, by `rn`, each once."""
        bad: dict[int, BadRecord] = {}
        for edge in self._roles.chains[number]:
            for record in self._by_chain.get(edge, ()):
                bad.setdefault(record.row, record)
        return bad

    def side_of(self, number: int | None) -> int | None:
        """Return the `side` of dead letters about a chain (see `letter_side`)."""
        if number is None:
            return None
        edge = self._roles.chains[number][0]
        return letter_side(self._flow, chain_of(self._flow, self._roles.readers[edge][0]))

    def count(self, counters: Counter[str]) -> None:
        """Count all records: in each chain that the topic drives, or else once.

        What tables do with null values is for them to count.
        """
        intake, roles, numbers = self._intake, self._roles, self.numbers
        skips = intake.topic.on_error == "skip"
        bad = "skipped" if skips else "dead_letter"
        for number, (edge, *_) in roles.chains.items():
            counters["read"] += intake.records.num_rows - len(roles.hidden(edge))
            if roles.table_of(edge) is None:
                counters["skipped"] += roles.count_seen(edge, intake.nulls)
            counters[bad] += roles.count_seen(edge, numbers) + len(self.of_chain(number))
        if not roles.readers:
            counters["side_read"] += intake.records.num_rows
            if not intake.topic.dimension:
                counters["skipped_side"] += len(intake.nulls)
            counters["skipped_side" if skips else "side_dead_letters"] += len(numbers)

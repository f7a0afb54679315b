"""The ledger of a database: whose an output is, and the last batch of each delivery partition.

There are no transactions: an entry is written behind the rows of its batch, so what it names is
there. Rows without an entry are those of a batch that was cut off, and come again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.connectors.clickhouse.client import Server
from kaflow_engine.connectors.clickhouse.names import LEDGER, RUNS, Names, name, text
from kaflow_engine.connectors.contract import Output, Owner
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.tables.ledger import Entry, taken_over

_DOING = "reading the ledger"
_NOTING = "writing the ledger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run whose an output is."""

    owner: Owner
    base: int
    """The version of the newest row that the table had when its state began."""
    number: int
    """How often this was written: the last one counts."""


class Ledger:
    """The ledger of one output."""

    def __init__(self, output: Output, owner: Owner) -> None:
        self._output, self._names, self._owner = output, Names(output), owner
        self._server = Server.of(output)

    @property
    def ddl(self) -> tuple[str, str]:
        """The statements that create it."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self._names.runs} (target String, state String, "
            "generation Int64, epoch Int64, base UInt64, number UInt64) "
            "ENGINE = ReplacingMergeTree(number) ORDER BY target",
            f"CREATE TABLE IF NOT EXISTS {self._names.ledger} (target String, state String, "
            "generation Int64, slot Int64, batch UInt64, mark String, rows Int64, refused String) "
            "ENGINE = ReplacingMergeTree(batch) ORDER BY (target, state, generation, slot)",
        )

    def create(self) -> None:
        """Create it unless it is there."""
        for statement in self.ddl:
            self._server.run("creating the ledger", statement)

    def exists(self) -> bool:
        """Tell whether it is there."""
        tables = f"name IN ({text(RUNS)}, {text(LEDGER)})"
        place = f"database = {text(self._names.database)}"
        asked = f"SELECT count() FROM system.tables WHERE {place} AND {tables}"
        return self._server.rows(_DOING, asked) == [[2]]

    def run(self) -> Run | None:
        """Return the run whose the output is."""
        found = self._server.rows(
            _DOING,
            f"SELECT state, generation, epoch, base, number FROM {self._names.runs} FINAL "
            f"WHERE target = {text(self._names.plain)}",
        )
        for state, generation, epoch, base, number in found:
            owner = Owner(state=state, generation=int(generation), epoch=int(epoch))
            return Run(owner=owner, base=int(base), number=int(number))
        return None

    def holdings(self) -> set[Holding]:
        """Return what the output holds of the state whose it is."""
        run = self.run()
        if run is None:
            return set()
        found = {(entry.batch, entry.mark) for entry in self._entries(run.owner).values()}
        return {
            Holding(
                state=run.owner.state,
                generation=run.owner.generation,
                batch=batch,
                mark=mark,
                table=str(self._output.settings["table"]),
            )
            for batch, mark in found or {(0, "")}
        }

    def begin(self) -> None:
        """Make the output that of a run: tasks of an earlier one find that and stop.

        Raises:
            TakenOver: A newer run has begun.
        """
        run = self.run()
        if run is not None and run.owner.epoch > self._owner.epoch:
            raise taken_over(self._output)
        self._own(run, self._owner)

    def hand_over(self) -> None:
        """Make the output that of another state: whoever had it can add no more."""
        owner = Owner(state=self._owner.state, generation=self._owner.generation)
        self._own(self.run(), owner)

    def _own(self, run: Run | None, owner: Owner) -> None:
        same = run is not None and _state(run.owner) == _state(owner)
        base = run.base if run is not None and same else self._newest_version()
        values = (
            *(text(self._names.plain), text(owner.state), owner.generation, owner.epoch, base),
            1 if run is None else run.number + 1,
        )
        self._server.run(
            _NOTING, f"INSERT INTO {self._names.runs} VALUES ({', '.join(map(str, values))})"
        )

    def _newest_version(self) -> int:
        """Return the version of the newest row: those of a state that begins replace them."""
        if not self._output.changes:
            return 0
        asked = f"SELECT max({name(self._names.own[0])}) FROM {self._names.table}"
        ((found,),) = self._server.rows(_DOING, asked)
        return int(found)

    def require_newest(self, epoch: int) -> Run:
        """Go on only as the newest run.

        Raises:
            TakenOver: Another has begun.
        """
        run = self.run()
        if run is None or (*_state(run.owner), run.owner.epoch) != (*_state(self._owner), epoch):
            raise taken_over(self._output)
        return run

    def entries(self) -> dict[int, Entry]:
        """Return the last batch of each delivery partition."""
        return self._entries(self._owner)

    def _entries(self, owner: Owner) -> dict[int, Entry]:
        rows = self._server.rows(
            _DOING,
            f"SELECT slot, batch, mark, rows, refused FROM {self._names.ledger} FINAL WHERE "
            f"target = {text(self._names.plain)} AND state = {text(owner.state)} "
            f"AND generation = {owner.generation}",
        )
        return {
            int(slot): Entry.of(int(batch), mark, int(count), json.loads(refused))
            for slot, batch, mark, count, refused in rows
        }

    def write(self, entries: Mapping[int, Entry]) -> None:
        """Note batches whose rows are there."""
        if not entries:
            return
        owner = (text(self._names.plain), text(self._owner.state), self._owner.generation)
        lines = [
            (*owner, slot, entry.batch, text(entry.mark), entry.rows, text(entry.refused_json))
            for slot, entry in sorted(entries.items())
        ]
        values = ", ".join(f"({', '.join(map(str, line))})" for line in lines)
        self._server.run(_NOTING, f"INSERT INTO {self._names.ledger} VALUES {values}")


def _state(owner: Owner) -> tuple[str, int]:
    return owner.state, owner.generation

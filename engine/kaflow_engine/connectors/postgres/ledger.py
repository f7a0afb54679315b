"""The ledger of a database: whose an output is, and the last batch of each delivery partition.

A task reads and writes it in the transaction of its rows. The row of the run is what fences: a task
holds it until its transaction ends, and a run that begins changes it.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.contract import Output, Owner
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.postgres.names import Names, statement
from kaflow_engine.connectors.tables.ledger import Entry, taken_over

if TYPE_CHECKING:
    from psycopg import Connection


class Ledger:
    """The ledger of one output."""

    def __init__(self, output: Output, owner: Owner) -> None:
        self._output, self._names, self._owner = output, Names(output), owner

    @property
    def ddl(self) -> tuple[str, str]:
        """The statements that create it."""
        return (
            f"CREATE TABLE IF NOT EXISTS {self._names.runs} (target text PRIMARY KEY, "
            "state text NOT NULL, generation integer NOT NULL, epoch bigint NOT NULL)",
            f"CREATE TABLE IF NOT EXISTS {self._names.ledger} (target text NOT NULL, "
            "state text NOT NULL, generation integer NOT NULL, slot integer NOT NULL, "
            "batch bigint NOT NULL, mark text NOT NULL, rows bigint NOT NULL, "
            "refused jsonb NOT NULL, PRIMARY KEY (target, state, generation, slot))",
        )

    def exists(self, connection: "Connection[Any]") -> bool:
        """Tell whether it is there."""
        row = connection.execute(
            "SELECT to_regclass(%s) IS NOT NULL AND to_regclass(%s) IS NOT NULL",
            [self._names.runs, self._names.ledger],
        ).fetchone()
        return row is not None and bool(row[0])

    def holdings(self, connection: "Connection[Any]") -> set[Holding]:
        """Return what the output holds, from whatever state."""
        name = str(self._output.settings["table"])
        asked = f"SELECT state, generation, batch, mark FROM {self._names.ledger} WHERE target = %s"
        rows = connection.execute(statement(asked), [self._names.plain]).fetchall()
        asked = f"SELECT state, generation FROM {self._names.runs} WHERE target = %s"
        owners = connection.execute(statement(asked), [self._names.plain]).fetchall()
        known = {(state, generation) for state, generation, _, _ in rows}
        rows += [(*owner, 0, "") for owner in owners if owner not in known]
        return {
            Holding(state=state, generation=generation, batch=batch, mark=mark, table=name)
            for state, generation, batch, mark in rows
        }

    def begin(self, connection: "Connection[Any]") -> None:
        """Make the output that of a run, once no task of an earlier one is within a transaction.

        Raises:
            TakenOver: A newer run has begun.
        """
        owner = self._owner
        row = connection.execute(
            statement(
                f"INSERT INTO {self._names.runs} AS r VALUES (%s, %s, %s, %s) ON CONFLICT (target) "
                "DO UPDATE SET state = excluded.state, generation = excluded.generation, "
                "epoch = excluded.epoch WHERE r.epoch <= excluded.epoch RETURNING r.epoch"
            ),
            [self._names.plain, owner.state, owner.generation, owner.epoch],
        ).fetchone()
        if row is None:
            raise taken_over(self._output)
        self._forget_others(connection)

    def hand_over(self, connection: "Connection[Any]") -> None:
        """Make the output that of another state: whoever had it can add no more."""
        connection.execute(
            statement(
                f"INSERT INTO {self._names.runs} VALUES (%s, %s, %s, 0) ON CONFLICT (target) "
                "DO UPDATE SET state = excluded.state, generation = excluded.generation, epoch = 0"
            ),
            [self._names.plain, self._owner.state, self._owner.generation],
        )
        self._forget_others(connection)

    def require_newest(self, connection: "Connection[Any]", epoch: int) -> None:
        """Go on only as the newest run, and let no other begin before this transaction ends.

        Raises:
            TakenOver: Another has begun.
        """
        row = connection.execute(
            statement(
                f"SELECT state, generation, epoch FROM {self._names.runs} "
                "WHERE target = %s FOR SHARE"
            ),
            [self._names.plain],
        ).fetchone()
        if row != (self._owner.state, self._owner.generation, epoch):
            raise taken_over(self._output)

    def entries(self, connection: "Connection[Any]") -> dict[int, Entry]:
        """Return the last batch of each delivery partition."""
        rows = connection.execute(
            statement(
                f"SELECT slot, batch, mark, rows, refused FROM {self._names.ledger} "
                "WHERE target = %s AND state = %s AND generation = %s"
            ),
            self._own(),
        ).fetchall()
        return {slot: Entry.of(*about) for slot, *about in rows}

    def write(self, connection: "Connection[Any]", entries: Mapping[int, Entry]) -> None:
        """Note batches."""
        rows: Iterable[Any] = [
            (
                *self._own(),
                slot,
                entry.batch,
                entry.mark,
                entry.rows,
                entry.refused_json,
            )
            for slot, entry in sorted(entries.items())
        ]
        with connection.cursor() as cursor:
            cursor.executemany(
                statement(
                    f"INSERT INTO {self._names.ledger} VALUES (%s, %s, %s, %s, %s, %s, %s, %s) "
                    "ON CONFLICT (target, state, generation, slot) DO UPDATE SET "
                    "batch = excluded.batch, mark = excluded.mark, rows = excluded.rows, "
                    "refused = excluded.refused"
                ),
                rows,
            )

    def _own(self) -> list[Any]:
        return [self._names.plain, self._owner.state, self._owner.generation]

    def _forget_others(self, connection: "Connection[Any]") -> None:
        connection.execute(
            statement(
                f"DELETE FROM {self._names.ledger} "
                "WHERE target = %s AND (state, generation) <> (%s, %s)"
            ),
            self._own(),
        )

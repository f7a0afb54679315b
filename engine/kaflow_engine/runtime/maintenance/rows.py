"""State rows in a DuckDB database: a table for each side, and the view `state` over all of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from kaflow_engine.duck.queries import SETTINGS
from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.errors import StateError
from kaflow_engine.flow.chains.chain import number_of_state
from kaflow_engine.flow.flow import Flow
from kaflow_engine.operators.inspect.entry_columns import FIXED, Decoded
from kaflow_engine.operators.inspect.key_places import shard_key
from kaflow_engine.operators.inspect.state_rows import decode
from kaflow_engine.operators.inspect.state_sides import StateSide, operator_called
from kaflow_engine.operators.rows.partitioning import part_of_shard
from kaflow_engine.runtime.maintenance.view import AT_ONCE, StateView
from kaflow_engine.state.keys import entry_key
from kaflow_engine.state.reader import Entries

HEAD = {
    "step": "INTEGER",
    "operator": "VARCHAR",
    "side": "VARCHAR",
    "kind": "VARCHAR",
    "key": "VARCHAR",
    "record": "VARCHAR",
    "event_time": "TIMESTAMP WITH TIME ZONE",
    "age_seconds": "DOUBLE",
    "expires": "TIMESTAMP WITH TIME ZONE",
    "expired": "BOOLEAN",
}
"""Columns before those with values, and their types."""


def parts_for(plan: Flow, steps: Sequence[int], key: str | None) -> list[tuple[int, int]]:
    """Return the state partitions in which rows may be found."""
    if key is None:
        return [(step, part) for step in steps for part in range(plan.partitions)]
    return [(step, part_of_shard(shard_key(plan, step, key)[0], plan.partitions)) for step in steps]


def decoded_parts(
    view: StateView, side: StateSide, key: str | None = None, limit: int | None = None
) -> Iterator[Decoded]:
    """Yield the rows of one side, in the order of their keys, in parts.

    Args:
        view: The state.
        side: Which side.
        key: Only those under this join key.
        limit: No more than so many.
    """
    left = limit
    for found in _entries(view, side, key):
        keys, values = found.keys[:left], found.values[:left]
        if keys:
            yield decode(view.moment.plan, side, keys, values)
        left = None if left is None else left - len(keys)
        if left == 0:
            return


def _entries(view: StateView, side: StateSide, key: str | None) -> Iterator[Entries]:
    if key is None:
        yield from view.ranges(side.step, side.byte)
        return
    if not side.has_keys:
        return
    wanted = shard_key(view.moment.plan, side.step, key)
    part = part_of_shard(wanted[0], view.moment.plan.partitions)
    found = view.partition(side.step, part).scan([entry_key(wanted, side.byte)])
    for at in range(0, len(found.keys), AT_ONCE):
        yield Entries(found.keys[at : at + AT_ONCE], found.values[at : at + AT_ONCE])


class StateTable:
    """Rows of a state, in a database of their own.

    Args:
        path: A file that does not exist; None: in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        settings: dict[str, Any] = dict(SETTINGS)
        self._con = duckdb.connect(":memory:" if path is None else str(path), config=settings)
        self._con.execute("SET GLOBAL TimeZone = 'UTC'")
        self._tables: list[str] = []
        self.rows: int = 0
        """How many were added."""

    def add(self, view: StateView, side: StateSide, found: Decoded, now: int) -> None:
        """Add rows of one side; `now` in epoch milliseconds."""
        mark = view.moment.watermarks.get(number_of_state(side.step))
        operator = operator_called(side.step, view.moment.plan)
        expired = "FALSE" if mark is None else f"coalesce(due < {mark}, FALSE)"
        head = ", ".join(
            f"{sql} AS {name}"
            for name, sql in {
                "step": str(side.step),
                "operator": literal(operator),
                "side": literal(side.name),
                "kind": literal(side.kind),
                "key": "key",
                "record": "record",
                "event_time": "TRY(make_timestamptz(ts * 1000))",
                "age_seconds": f"({now} - ts) / 1000",
                "expires": "TRY(make_timestamptz(due * 1000))",
                "expired": expired,
            }.items()
        )
        fixed = ", ".join(column.name for column in FIXED)
        name = identifier(f"{side.step}_{side.byte}_{side.name}")
        sql = f"SELECT {head}, inner_rows.* EXCLUDE ({fixed}) FROM ({found.sql}) inner_rows"
        if not found.columns:
            sql = f"SELECT {head} FROM ({found.sql})"
        self._con.register("rows", found.rows)
        if name in self._tables:
            self._con.execute(f"INSERT INTO {name} {sql}")
        else:
            self._con.execute(f"CREATE TABLE {name} AS {sql}")
            self._tables.append(name)
        self._con.unregister("rows")
        self.rows += int(found.rows.num_rows)

    def finish(self) -> None:
        """Make the view `state`, in which a column that a side lacks is null."""
        if not self._tables:
            columns = ", ".join(f"NULL::{kind} AS {name}" for name, kind in HEAD.items())
            self._con.execute(f"CREATE VIEW state AS SELECT {columns} WHERE FALSE")
            return
        every = " UNION ALL BY NAME ".join(f"SELECT * FROM {name}" for name in self._tables)
        self._con.execute(f"CREATE VIEW state AS {every}")

    def write_parquet(self, path: Path) -> None:
        """Write the view `state` to a file.

        Raises:
            StateError: The file cannot be written.
        """
        try:
            self._con.execute(f"COPY (FROM state) TO {literal(str(path))} (FORMAT parquet)")
        except duckdb.Error as error:
            raise StateError(
                f"cannot write '{path}': {str(error).partition(chr(10))[0]}"
            ) from error

    def close(self) -> None:
        """Close the database."""
        self._con.close()

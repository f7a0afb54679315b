"""Rows that a table had before a pipeline first wrote to it, which stay a part of those it writes.

They are copied when the table becomes that of a first state, in the transaction that says so, and
each row is written with what stood there then: so a batch that runs again leaves the same.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.postgres.names import Names, statement
from kaflow_engine.connectors.tables.columns import key_columns
from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from psycopg import Connection

_BOTH: Mapping[str, str] = {
    "sum": "coalesce({now} + {before}, {now}, {before})",
    "min": "least({now}, {before})",
    "max": "greatest({now}, {before})",
}
"""What is written of two values, one of which may be NULL."""


def added(output: Output) -> Mapping[str, str]:
    """Return how columns take in what a table had: by name, `sum`, `min` or `max`."""
    found: dict[str, str] = json.loads(str(output.settings.get("adds") or "{}"))
    return found


def before_ddl(output: Output) -> str:
    """Return the statement that creates the table of what tables had."""
    return (
        f"CREATE TABLE IF NOT EXISTS {Names(output).before} (target text NOT NULL, "
        "key jsonb NOT NULL, row jsonb NOT NULL, PRIMARY KEY (target, key))"
    )


def lacks_before(connection: "Connection[Any]", output: Output) -> bool:
    """Tell whether that table is needed, and not there."""
    if not added(output):
        return False
    asked = "SELECT to_regclass(%s) IS NULL"
    return connection.execute(asked, [Names(output).before]).fetchone() == (True,)


def keep_rows(connection: "Connection[Any]", output: Output) -> None:
    """Copy the rows of a table that no pipeline has written to yet."""
    names = Names(output)
    connection.execute(
        statement(
            f"INSERT INTO {names.before} SELECT %s, {_key('t', key_columns(output))}, to_jsonb(t) "
            f"FROM {names.table} AS t ON CONFLICT DO NOTHING"
        ),
        [names.plain],
    )


def with_before(output: Output, columns: Sequence[Column], came: str) -> str:
    """Return SQL for the rows that came, with what the table had before.

    Args:
        output: Which one.
        columns: Those that are written.
        came: The table of what came.
    """
    by = added(output)
    names = [identifier(column.name) for column in columns]
    if not by:
        return f"SELECT {', '.join(names)} FROM {came}"
    values = [
        _BOTH[by[column.name]].format(now=f"c.{name}", before=f"b.{name}")
        if column.name in by
        else f"c.{name}"
        for column, name in zip(columns, names, strict=True)
    ]
    key = _key("c", key_columns(output))
    return f"SELECT {', '.join(values)} FROM {came} AS c LEFT JOIN {_rows(output)} ON k.key = {key}"


def left_of(output: Output, went: str) -> tuple[str, str] | None:
    """Return what rows that go leave: SQL that puts back what was there before, and a condition on
    the others; None: nothing.

    Args:
        output: Which one.
        went: The table of keys that go.
    """
    by = added(output)
    if not by:
        return None
    names, keys = Names(output), key_columns(output)
    same = " AND ".join(f"t.{n} = w.{n}" for n in (identifier(key.name) for key in keys))
    sets = ", ".join(f"{name} = b.{name}" for name in map(identifier, by))
    back = (
        f"UPDATE {names.table} AS t SET {sets} FROM {went} AS w JOIN {_rows(output)} "
        f"ON k.key = {_key('w', keys)} WHERE {same}"
    )
    others = (
        f"NOT EXISTS (SELECT 1 FROM {names.before} AS k WHERE k.target = {literal(names.plain)} "
        f"AND k.key = {_key('w', keys)})"
    )
    return back, others


def _key(of: str, keys: Sequence[Column]) -> str:
    return f"jsonb_build_array({', '.join(f'{of}.{identifier(key.name)}' for key in keys)})"


def _rows(output: Output) -> str:
    """Return SQL for what a table had: `k` has the keys, `b` the columns."""
    names = Names(output)
    return (
        f"((SELECT * FROM {names.before} WHERE target = {literal(names.plain)}) AS k "
        f"CROSS JOIN LATERAL jsonb_populate_record(NULL::{names.table}, k.row) AS b)"
    )

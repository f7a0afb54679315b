"""The table of an output: created where that is asked for, else compared with what is written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.postgres.errors import PostgresUnfit
from kaflow_engine.connectors.postgres.names import Names
from kaflow_engine.connectors.postgres.types import created_as, holds
from kaflow_engine.connectors.tables.columns import key_columns, written_columns
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from psycopg import Connection

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod),
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '',
       a.attgenerated <> '' OR a.attidentity = 'a'
FROM pg_attribute a WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped
"""
_UNIQUE = """
SELECT 1 FROM pg_index i
WHERE i.indrelid = %s::oid AND i.indisunique AND i.indisvalid AND i.indimmediate
  AND i.indpred IS NULL AND i.indnkeyatts = cardinality(%s::text[])
  AND %s::text[] <@ (
    SELECT array_agg(a.attname::text) FROM pg_attribute a
    WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
  )
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A column of a table that is there."""

    name: str
    type: str
    needed: bool
    """It must be given a value."""
    computed: bool
    """It cannot be given one."""


def table_ddl(output: Output) -> str:
    """Return the statement that creates the table of an output."""
    lines = [
        f"{identifier(column.name)} {created_as(column.type)}" for column in written_columns(output)
    ]
    if keys := key_columns(output):
        lines.append(f"PRIMARY KEY ({_listed(keys)})")
    return f"CREATE TABLE IF NOT EXISTS {Names(output).table} ({', '.join(lines)})"


def _listed(columns: Sequence[Column]) -> str:
    return ", ".join(identifier(column.name) for column in columns)


def schema_ddl(connection: "Connection[Any]", output: Output) -> tuple[str, ...]:
    """Return the statement that creates the schema of a table, where that is missing."""
    schema = Names(output).schema
    if schema is None or _schema_of(connection, schema) is not None:
        return ()
    return (f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}",)


def require_fit(connection: "Connection[Any]", output: Output) -> bool:
    """Compare the table of an output with what is written; nothing is changed by looking.

    Returns:
        Whether it is there; where it is not, it may be created.

    Raises:
        PostgresUnfit: It does not fit, or is not there and is not to be created.
    """
    names = Names(output)
    oid, kind = _found(connection, names)
    if oid is None:
        _require_creatable(connection, output)
        return False
    if kind not in ("r", "p"):
        raise PostgresUnfit(
            f"'{names.plain}' of output '{output.name}' is no table",
            hint="rows are written into tables, not into views, foreign tables and sequences",
        )
    wrong = [*_wrong_columns(connection, oid, output), *_wrong_rights(connection, oid, output)]
    if wrong:
        what = "".join(f"\n  {line}" for line, _ in wrong)
        raise PostgresUnfit(
            f"table '{output.settings['table']}' does not take the rows of output "
            f"'{output.name}':{what}",
            hint="; ".join(dict.fromkeys(cure for _, cure in wrong)),
        )
    return True


def _found(connection: "Connection[Any]", names: Names) -> tuple[int | None, str]:
    row = connection.execute(
        "SELECT c.oid::bigint, c.relkind::text FROM pg_class c WHERE c.oid = to_regclass(%s)",
        [names.table],
    ).fetchone()
    return (None, "") if row is None else (row[0], row[1])


def _require_creatable(connection: "Connection[Any]", output: Output) -> None:
    names = Names(output)
    if not output.settings.get("create"):
        raise PostgresUnfit(
            f"there is no table '{output.settings['table']}' for output '{output.name}'",
            hint=f"write create: true, or run {table_ddl(output)}",
        )
    row = _schema_of(connection, names.schema)
    if row is None:
        may = "SELECT has_database_privilege(current_database(), 'CREATE')"
        if names.schema is not None and connection.execute(may).fetchone() == (True,):
            return  # it is created with the table
        raise PostgresUnfit(
            f"there is no schema '{names.schema}' for the table of output '{output.name}'",
            hint=f"run CREATE SCHEMA {identifier(names.schema or 'public')}",
        )
    if not row[1]:
        raise PostgresUnfit(
            f"the user of output '{output.name}' may not create a table in schema '{row[0]}'",
            hint=f"run GRANT CREATE ON SCHEMA {identifier(row[0])} TO <user>, or create the table",
        )


def _wrong_columns(
    connection: "Connection[Any]", oid: int, output: Output
) -> Iterator[tuple[str, str]]:
    names, columns = Names(output), written_columns(output)
    rows: Sequence[Any] = connection.execute(_COLUMNS, [oid]).fetchall()
    there = {row[0]: Found(*row) for row in rows}
    for column in columns:
        found = there.get(column.name)
        if found is None:
            add = f"ADD COLUMN {identifier(column.name)} {created_as(column.type)}"
            yield f"it has no column '{column.name}'", f"run ALTER TABLE {names.table} {add}"
        else:
            yield from _wrong_column(names, column, found)
    written = {column.name for column in columns}
    for found in there.values():
        if found.needed and found.name not in written:
            cure = f"ALTER COLUMN {identifier(found.name)} DROP NOT NULL"
            yield (
                f"its column '{found.name}' must have a value, and is not selected",
                f"select it, or run ALTER TABLE {names.table} {cure}",
            )
    keys = key_columns(output)
    listed = [key.name for key in keys]
    if keys and there.keys() >= set(listed):
        if connection.execute(_UNIQUE, [oid, listed, listed]).fetchone() is None:
            called = " and ".join(f"'{name}'" for name in listed)
            are = "its column {} is" if len(keys) == 1 else "its columns {} are"
            yield (
                f"{are.format(called)} the key of the rows, and nothing keeps it unique",
                f"run ALTER TABLE {names.table} ADD PRIMARY KEY ({_listed(keys)})",
            )


def _wrong_column(names: Names, column: Column, found: Found) -> Iterator[tuple[str, str]]:
    wanted = created_as(column.type)
    if found.computed:
        yield f"its column '{found.name}' is generated", "do not select it"
    elif not holds(found.type, column.type):
        yield (
            f"its column '{found.name}' is {found.type}, and {column.type} needs {wanted}",
            f"run ALTER TABLE {names.table} ALTER COLUMN {identifier(found.name)} TYPE {wanted}, "
            "or cast in the query",
        )


def _wrong_rights(
    connection: "Connection[Any]", oid: int, output: Output
) -> Iterator[tuple[str, str]]:
    needed = ("INSERT", "SELECT", "UPDATE", "DELETE") if output.changes else ("INSERT",)
    for right in needed:
        row = connection.execute(
            "SELECT has_table_privilege(%s::oid, %s), current_user", [oid, right]
        ).fetchone()
        if row is not None and not row[0]:
            grant = f"GRANT {', '.join(needed)} ON {Names(output).table} TO {identifier(row[1])}"
            yield f"the user '{row[1]}' has no right to {right}", f"run {grant}"


def _schema_of(connection: "Connection[Any]", schema: str | None) -> tuple[str, bool] | None:
    """Return the name of a schema, None: the first one of the search path, and whether its tables
    can be created by whoever asks; None: it is not there."""
    return connection.execute(
        "SELECT n.nspname::text, has_schema_privilege(n.oid, 'CREATE') FROM pg_namespace n "
        "WHERE n.nspname = coalesce(%s::text, current_schema()::text)",
        [schema],
    ).fetchone()

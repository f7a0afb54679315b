"""What a database says of a table that is read: its columns, and the key that pages are cut by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.pages.declared import require_columns
from kaflow_engine.connectors.postgres.source.types import read_as, way_out
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.databases import PostgresParams
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from psycopg import Connection

_RELATION = "SELECT c.oid, c.relkind FROM pg_class c WHERE c.oid = to_regclass(%s)"
_COLUMNS = """
SELECT a.attname,
       CASE t.typtype WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod)
                      ELSE format_type(a.atttypid, a.atttypmod) END,
       coalesce(e.typtype, t.typtype) = 'e', a.attnotnull
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_INDEXES = """
SELECT i.indisprimary, array_agg(a.attname::text ORDER BY k.place)
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place)
LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
WHERE i.indrelid = %s::oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
  AND k.place <= i.indnkeyatts
GROUP BY i.indexrelid, i.indisprimary
"""
_OTHERS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table that can be read in pages."""

    name: str
    """Quoted."""
    columns: tuple[Column, ...]
    """With the types that they have here."""
    kinds: Mapping[str, str]
    """By column, the type that it has there."""
    key: tuple[str, ...]
    """Columns, in the order of their index."""


def table_name(params: PostgresParams) -> str:
    """Return the name of a table, quoted, with its schema where it has one."""
    return ".".join(map(identifier, params.table.split(".")))


def look(connection: "Connection[Any]", params: PostgresParams, what: str) -> Table:
    """Return what there is to know of a table.

    Args:
        connection: To its database.
        params: Which one.
        what: Reads it, as errors say it.

    Raises:
        SourceUnfit: It cannot be read in pages, or not into columns.
    """
    name = table_name(params)
    found = connection.execute(_RELATION, (name,)).fetchone()
    if found is None:
        raise SourceUnfit(
            f"there is no table '{params.table}' for {what} in connection '{params.connection}'",
            hint="write table_name: <schema>.<table> where the schema is not on the search path of "
            "the user; the user needs USAGE on the schema",
        )
    number, kind = found
    if kind not in ("r", "p") and not params.attached:
        raise SourceUnfit(
            f"'{params.table}', which {what} reads, is {_OTHERS.get(kind, 'no table')}",
            hint="read the table behind it: pages need a key with a unique index",
        )
    rows = connection.execute(_COLUMNS, (number,)).fetchall()
    kinds = {each: type_name for each, type_name, _, _ in rows}
    never_null = {each for each, _, _, filled in rows if filled}
    columns, key = _columns(params, what, rows), ()
    if not params.attached:
        indexes = connection.execute(_INDEXES, (number,)).fetchall()
        key = _key(params, what, kinds, never_null, indexes)
    return Table(name=name, columns=columns, kinds=kinds, key=key)


def _columns(params: PostgresParams, what: str, rows: Sequence[Any]) -> tuple[Column, ...]:
    if params.columns:
        names = [column.name for column in params.columns]
        require_columns(params.table, what, names, [name for name, *_ in rows])
        return params.columns
    found: list[Column] = []
    for name, kind, is_enum, _ in rows:
        own = read_as(kind, is_enum)
        if own is None:
            raise SourceUnfit(
                f"column '{name}' of table '{params.table}', which {what} reads, is {kind}: there "
                "is no type for it here",
                hint=way_out(name, kind),
            )
        found.append(Column(name, own))
    return tuple(found)


def _key(
    params: PostgresParams,
    what: str,
    kinds: Mapping[str, str],
    never_null: set[str],
    indexes: Sequence[Any],
) -> tuple[str, ...]:
    if not params.key:
        for is_primary, columns in indexes:
            if is_primary:
                return tuple(columns)
        raise SourceUnfit(
            f"table '{params.table}', which {what} reads, has no primary key",
            hint="write page_key: [<column>, …]: the columns of a unique index, none of them NULL",
        )
    require_columns(params.table, what, params.key, list(kinds))
    listed = ", ".join(map(identifier, params.key))
    for name in params.key:
        if name not in never_null:
            raise SourceUnfit(
                f"column '{name}' of the page_key of {what} may be NULL in table '{params.table}'",
                hint="name other columns, or run ALTER TABLE "
                f"{table_name(params)} ALTER COLUMN {identifier(name)} SET NOT NULL",
            )
    for _, columns in indexes:
        if None not in columns and set(columns) == set(params.key):
            return tuple(columns)
    raise SourceUnfit(
        f"the page_key of {what}, {', '.join(params.key)}, has no unique index in table "
        f"'{params.table}'",
        hint="write the columns of one that is there, or run CREATE UNIQUE INDEX ON "
        f"{table_name(params)} ({listed})",
    )

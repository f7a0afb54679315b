"""What a server says of a table that is read: its columns, its engine and its sorting key."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.connectors.clickhouse.client import Server
from kaflow_engine.connectors.clickhouse.names import database_of, name, text
from kaflow_engine.connectors.clickhouse.source.types import read_as, way_out
from kaflow_engine.connectors.clickhouse.types import parts_of
from kaflow_engine.connectors.pages.declared import require_columns
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.databases import ClickHouseParams
from kaflow_engine.model.columns import Column

LOOKING = "looking at the table"
_COMPUTED = ("ALIAS", "MATERIALIZED", "EPHEMERAL")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """One expression of a sorting key."""

    sql: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table that can be read in pages."""

    name: str
    """Quoted."""
    columns: tuple[Column, ...]
    kinds: Mapping[str, str]
    """By column, the type that it has there."""
    key: tuple[KeyPart, ...]
    merges: bool
    """Whether its engine merges rows of a key, so that FINAL shows what counts."""


def look(
    server: Server, params: ClickHouseParams, connection: Mapping[str, str], what: str
) -> Table:
    """Return what there is to know of a table.

    Args:
        server: That has it.
        params: Which one.
        connection: How the server is reached.
        what: Reads it, as errors say it.

    Raises:
        SourceUnfit: It cannot be read in pages, or not into columns.
    """
    server.require_version(LOOKING)
    database, plain = database_of(params.table, connection), params.table.rpartition(".")[2]
    place = f"database = {text(database)} AND"
    tables = server.rows(
        LOOKING,
        f"SELECT engine, sorting_key FROM system.tables WHERE {place} name = {text(plain)}",
    )
    if not tables:
        raise SourceUnfit(
            f"there is no table '{plain}' in database '{database}' for {what}, in connection "
            f"'{params.connection}'",
            hint="write table_name: <database>.<table>; the user needs SELECT on it",
        )
    engine, sorting = tables[0]
    family = engine.removeprefix("Replicated").removeprefix("Shared")
    if not family.endswith("MergeTree"):
        raise SourceUnfit(
            f"table '{params.table}', which {what} reads, is of engine {engine}, and not of the "
            "MergeTree family: it has no sorting key",
            hint="read the table behind it, on each server that has a part of it",
        )
    rows = server.rows(
        LOOKING,
        "SELECT name, type, default_kind FROM system.columns "
        f"WHERE {place} table = {text(plain)} ORDER BY position",
    )
    quoted = f"{name(database)}.{name(plain)}"
    return Table(
        name=quoted,
        columns=_columns(params, what, rows),
        kinds={each: kind for each, kind, _ in rows},
        key=_key(server, params, what, quoted, sorting),
        merges=family != "MergeTree",
    )


def _columns(params: ClickHouseParams, what: str, rows: list[list[str]]) -> tuple[Column, ...]:
    if params.columns:
        names = [column.name for column in params.columns]
        require_columns(params.table, what, names, [each for each, _, _ in rows])
        return params.columns
    found: list[Column] = []
    for each, kind, default in rows:
        own = read_as(kind)
        if default in _COMPUTED:
            continue
        if own is None:
            raise SourceUnfit(
                f"column '{each}' of table '{params.table}', which {what} reads, is {kind}: there "
                "is no type for it here",
                hint=way_out(each),
            )
        found.append(Column(each, own))
    return tuple(found)


def _key(
    server: Server, params: ClickHouseParams, what: str, quoted: str, sorting: str
) -> tuple[KeyPart, ...]:
    parts = [part for part in parts_of(f"tuple({sorting})")[1] if part]
    if not parts:
        raise SourceUnfit(
            f"table '{params.table}', which {what} reads, has no sorting key",
            hint="read a table with ORDER BY: its rows are read in pages by that",
        )
    chosen = ", ".join(f"{part} AS _key{number}" for number, part in enumerate(parts))
    described = server.rows(LOOKING, f"DESCRIBE (SELECT {chosen} FROM {quoted})")
    kinds = [str(row[1]) for row in described]
    for part, kind in zip(parts, kinds, strict=True):
        if "Nullable(" in kind:
            raise SourceUnfit(
                f"{part} of the sorting key of table '{params.table}', which {what} reads, is "
                f"{kind}",
                hint="read a table whose sorting key takes no NULL: such rows are behind no key",
            )
    return tuple(KeyPart(sql=p, kind=k) for p, k in zip(parts, kinds, strict=True))

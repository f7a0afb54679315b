"""What a server says of a table that is read: its columns, its engine and its sorting key."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.connectors.clickhouse.client import Server
from kaflow_engine.connectors.clickhouse.names import name, text
from kaflow_engine.connectors.clickhouse.source.types import read_as, way_out
from kaflow_engine.connectors.clickhouse.table import OLDEST
from kaflow_engine.connectors.clickhouse.types import parts_of
from kaflow_engine.errors import SourceUnfit, UnknownName
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


def database_of(params: ClickHouseParams, connection: Mapping[str, str]) -> str:
    """Return the database of a table: that of its name, else that of the connection."""
    before, dot, _ = params.table.rpartition(".")
    return before if dot else connection.get("database", "default")


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
    _require_version(server, what)
    database, plain = database_of(params, connection), params.table.rpartition(".")[2]
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


def _require_version(server: Server, what: str) -> None:
    ((version,),) = server.rows(LOOKING, "SELECT version()")
    major, minor = (int(part) for part in str(version).split(".")[:2])
    if (major, minor) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise SourceUnfit(
            f"{what} needs ClickHouse {oldest} or newer, and this is {version}",
            hint="read from a newer server",
        )


def _columns(params: ClickHouseParams, what: str, rows: list[list[str]]) -> tuple[Column, ...]:
    if params.columns:
        known = [each for each, _, _ in rows]
        for column in params.columns:
            if column.name not in known:
                hint = UnknownName("column", column.name, known).hint
                raise SourceUnfit(
                    f"table '{params.table}', which {what} reads, has no column '{column.name}'",
                    hint=hint or f"it has {', '.join(known)}",
                )
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

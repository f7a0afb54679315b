"""The table of an output: created where that is asked for, else compared with what is written."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.connectors.clickhouse.client import Server
from kaflow_engine.connectors.clickhouse.errors import ClickHouseUnfit
from kaflow_engine.connectors.clickhouse.names import Names, name, text
from kaflow_engine.connectors.clickhouse.types import created_as, holds
from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.tables.columns import key_columns, written_columns
from kaflow_engine.model.columns import Column

_WINDOW = 1000
"""Blocks that a table which is created knows again."""
_LOOKING = "looking at the table"
Wrong = tuple[str, str]
"""What is wrong, and what helps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A table that is there."""

    engine: str
    full: str
    """The engine with its arguments and settings."""
    sorted_by: str
    columns: Mapping[str, tuple[str, str]]
    """Name → type, and how it gets its value where none is given."""

    @property
    def copied(self) -> bool:
        """Whether other servers have copies of it."""
        return self.engine.startswith(("Replicated", "Shared"))

    @property
    def family(self) -> str:
        """Its engine, wherever its copies are."""
        return self.engine.removeprefix("Replicated").removeprefix("Shared")


def table_ddl(output: Output) -> str:
    """Return the statement that creates the table of an output."""
    names, keys = Names(output), key_columns(output)
    columns = [
        f"{name(column.name)} {created_as(column.type, nullable=column not in keys)}"
        for column in written_columns(output)
    ]
    engine = f"MergeTree ORDER BY tuple() SETTINGS non_replicated_deduplication_window = {_WINDOW}"
    if keys:
        version, gone = names.own
        columns += [f"{name(version)} UInt64", f"{name(gone)} UInt8"]
        engine = _replacing(names, keys)
    return f"CREATE TABLE IF NOT EXISTS {names.table} ({', '.join(columns)}) ENGINE = {engine}"


def require_fit(output: Output) -> bool:
    """Compare the table of an output with what is written; nothing is changed by looking.

    Returns:
        Whether it is there; where it is not, it may be created.

    Raises:
        ClickHouseUnfit: It does not fit, or is not there and is not to be created.
        ClickHouseAway: The server does not answer.
    """
    server = Server.of(output)
    server.require_version(_LOOKING)
    found = _found(server, output)
    if found is None:
        _require_creatable(server, output)
        return False
    wrong = [*_wrong_engine(server, output, found), *_wrong_columns(output, found)]
    if wrong:
        what = "".join(f"\n  {line}" for line, _ in wrong)
        raise ClickHouseUnfit(
            f"table '{output.settings['table']}' does not take the rows of output "
            f"'{output.name}':{what}",
            hint="; ".join(dict.fromkeys(cure for _, cure in wrong)),
        )
    return True


def _found(server: Server, output: Output) -> Found | None:
    names = Names(output)
    place = f"database = {text(names.database)} AND"
    tables = server.rows(
        _LOOKING,
        "SELECT engine, engine_full, sorting_key FROM system.tables "
        f"WHERE {place} name = {text(names.plain)}",
    )
    if not tables:
        return None
    columns = server.rows(
        _LOOKING,
        "SELECT name, type, default_kind FROM system.columns "
        f"WHERE {place} table = {text(names.plain)}",
    )
    engine, full, sorted_by = tables[0]
    there = {each: (kind, default) for each, kind, default in columns}
    return Found(engine=engine, full=full, sorted_by=sorted_by, columns=there)


def _require_creatable(server: Server, output: Output) -> None:
    names = Names(output)
    if not output.settings.get("create"):
        raise ClickHouseUnfit(
            f"there is no table '{output.settings['table']}' for output '{output.name}'",
            hint=f"write create: true, or run {table_ddl(output)}",
        )
    asked = f"SELECT 1 FROM system.databases WHERE name = {text(names.database)}"
    if not server.rows(_LOOKING, asked):
        raise ClickHouseUnfit(
            f"there is no database '{names.database}' for the table of output '{output.name}'",
            hint=f"run CREATE DATABASE {name(names.database)}",
        )


def _wrong_engine(server: Server, output: Output, found: Found) -> Iterator[Wrong]:
    if not found.family.endswith("MergeTree"):
        yield (
            f"it is of engine {found.engine}, and not of the MergeTree family",
            "write into the table behind it",
        )
    elif output.changes:
        yield from _wrong_replacing(output, found)
    elif found.family != "MergeTree":
        yield (
            f"it is of engine {found.engine}, which merges rows, and here each row is one more",
            "write mode: upsert with a key, or write a MergeTree table, from which a materialized "
            "view may fill this one",
        )
    elif output.delivery == "exactly_once" and not _window(server, found):
        kind = "replicated" if found.copied else "non_replicated"
        setting = f"{kind}_deduplication_window = {_WINDOW}"
        yield (
            "it does not know blocks that come twice",
            f"run ALTER TABLE {Names(output).table} MODIFY SETTING {setting}, or write delivery: "
            "at_least_once",
        )


def _wrong_replacing(output: Output, found: Found) -> Iterator[Wrong]:
    keys, own = key_columns(output), Names(output).own
    version = found.columns.get(own[0], ("missing", ""))[0]
    instead = f"write another table: CREATE TABLE … ENGINE = {_replacing(Names(output), keys)}"
    if found.family != "ReplacingMergeTree" or _arguments(found.full)[-2:] != [*own]:
        yield (
            f"its engine is {found.full.partition(' ')[0]}, and rows that replace each other, or "
            f"go, need ReplacingMergeTree({', '.join(own)})",
            instead,
        )
    elif version != "UInt64":
        yield f"its column '{own[0]}' is {version}, not UInt64", instead
    if sorted(found.sorted_by.replace("`", "").split(", ")) != sorted(key.name for key in keys):
        yield (
            f"it is sorted by {found.sorted_by or 'nothing'}, and the key of the rows is "
            + ", ".join(f"'{key.name}'" for key in keys),
            instead,
        )


def _replacing(names: Names, keys: Sequence[Column]) -> str:
    """Return the engine of a table whose rows replace each other."""
    listed = ", ".join(name(key.name) for key in keys)
    by = listed if len(keys) == 1 else f"({listed})"
    return f"ReplacingMergeTree({', '.join(map(name, names.own))}) ORDER BY {by}"


def _arguments(engine: str) -> list[str]:
    """Return the arguments of an engine.

    >>> _arguments("ReplicatedReplacingMergeTree('/t/{shard}', '{replica}', v, `d`) ORDER BY k")
    ["'/t/{shard}'", "'{replica}'", 'v', 'd']
    """
    found = re.match(r"\w+\(([^)]*)\)", engine)
    return [part.strip().strip("`") for part in found[1].split(",")] if found else []


def _window(server: Server, found: Found) -> int:
    """Return how many blocks a table knows again."""
    kind = "replicated" if found.copied else "non_replicated"
    setting = f"{kind}_deduplication_window"
    own = re.search(rf"\b{setting} = (\d+)", found.full)
    if own:
        return int(own[1])
    asked = f"SELECT value FROM system.merge_tree_settings WHERE name = {text(setting)}"
    return sum(int(value) for (value,) in server.rows(_LOOKING, asked))


def _wrong_columns(output: Output, found: Found) -> Iterator[Wrong]:
    for column in written_columns(output):
        there = found.columns.get(column.name)
        if there is None:
            add = f"ADD COLUMN {name(column.name)} {created_as(column.type)}"
            cure = f"run ALTER TABLE {Names(output).table} {add}"
            yield f"it has no column '{column.name}'", cure
        else:
            yield from _wrong_column(output, column, *there)


def _wrong_column(output: Output, column: Column, kind: str, default: str) -> Iterator[Wrong]:
    wanted = created_as(column.type)
    if default in ("MATERIALIZED", "ALIAS"):
        yield f"its column '{column.name}' is computed", "do not select it"
    elif not holds(kind, column.type):
        change = f"MODIFY COLUMN {name(column.name)} {wanted}"
        yield (
            f"its column '{column.name}' is {kind}, and {column.type} needs {wanted}",
            f"run ALTER TABLE {Names(output).table} {change}, or cast in the query",
        )

"""Tables of attached databases that a handler joins."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from kaflow_engine.model.brought.settings import Opening, Setting
from kaflow_engine.model.files.tree import Entry
from kaflow_engine.model.outputs.connection_specs import MySQLConnection, PostgresConnection
from kaflow_engine.model.sqlflow.lowering.commands import Attached, Commands
from kaflow_engine.model.sqlflow.lowering.handler_sql import HandlerSql
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, entry, mapping, sql_entry
from kaflow_engine.model.sqlflow.lowering.sources import pipeline_name
from kaflow_engine.model.sqlflow.lowering.static import Static


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """What is looked up."""

    entries: tuple[Entry, ...]
    """`sources` of a pipeline file."""
    settings: tuple[Setting, ...]
    openings: tuple[Opening, ...]


@dataclass(slots=True)
class _Parts:
    sources: list[Entry] = field(default_factory=list[Entry])
    settings: list[Setting] = field(default_factory=list[Setting])
    openings: list[Opening] = field(default_factory=list[Opening])


def looked_up(
    said: Said, commands: Commands, handlers: Sequence[HandlerSql], mistakes: Mistakes
) -> LookedUp:
    """Return the tables that handlers join, and how their databases are reached."""
    parts = _Parts()
    for name, database in commands.attached.items():
        parts.openings.append(Opening(kind=database.kind, at=database.at))
        if database.kind in ("postgres", "mysql"):
            _connect(said, name, database, parts, mistakes)
    seen: dict[str, Static | None] = {}
    for lookup in (each for handler in handlers for each in handler.lookups):
        if lookup.source in seen:
            _require_same(seen[lookup.source], lookup.static, mistakes)
            continue
        seen[lookup.source] = lookup.static
        if lookup.static is not None:
            _add_static(said, lookup.static, parts)
            continue
        database = commands.attached[lookup.database.lower()]
        at = database.at
        where = (
            entry("connection", _connection(said, lookup.database), at)
            if database.kind in ("postgres", "mysql")
            else entry("path", database.where, at)
        )
        value = mapping(
            at,
            entry("type", database.kind, at),
            entry("attached", True, at),
            where,
            entry("table_name", lookup.table, at),
        )
        parts.sources.append(entry(lookup.source, value, at))

    own = (entry("sources", mapping(said.start, *parts.sources), said.start),)
    return LookedUp(
        entries=own if parts.sources else (),
        settings=tuple(parts.settings),
        openings=tuple(parts.openings),
    )


def _require_same(first: Static | None, other: Static | None, mistakes: Mistakes) -> None:
    """Two tables under one name would be one."""
    if first is not None and other is not None and first.sql != other.sql:
        mistakes.add(
            f"two tables are called '{other.name}', the other one at {first.at}",
            other.at,
            "give one of them another alias",
        )


def _add_static(said: Said, static: Static, parts: _Parts) -> None:
    at = static.at
    value = mapping(
        at,
        entry("type", "sql", at),
        entry("attached", True, at),
        sql_entry("sql", static.sql, at),
        entry("table_name", static.name, at),
        entry("files", list(static.files), at),
    )
    parts.sources.append(entry(static.source, value, at))
    for file in static.files:
        path = str((said.file.parent / file).absolute())
        parts.openings.append(Opening(kind="read", at=at, path=path))


def _connection(said: Said, database: str) -> str:
    return f"{pipeline_name(said)}.{database.lower()}"


def _connect(said: Said, name: str, database: Attached, parts: _Parts, mistakes: Mistakes) -> None:
    kind = PostgresConnection if database.kind == "postgres" else MySQLConnection
    try:
        connection = kind.model_validate({"url": database.where})
    except ValidationError as error:
        context = error.errors()[0].get("ctx", {})
        message = f"what is attached {context.get('message', 'is not the address of a database')}"
        mistakes.add(message, database.at, str(context.get("hint", "")))
        return
    path = (database.kind, "connections", _connection(said, name))
    parts.settings.append(Setting(path=path, value=connection, at=database.at))

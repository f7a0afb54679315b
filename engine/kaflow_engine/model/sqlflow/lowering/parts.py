"""What the statements of a handler give: rows for the sink of the pipeline, and windows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kaflow_engine.errors import ModelError
from kaflow_engine.model.spec import Path
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, SqlText, listed
from kaflow_engine.model.sqlflow.lowering.statements import statements
from kaflow_engine.model.sqlflow.lowering.windows.window import (
    Managed,
    Window,
    filled_table,
    lower_window,
    managed_tables,
)
from kaflow_engine.model.sqlflow.sink_specs import SinkSpec

HANDLER: Path = ("pipeline", "handler")
_WRITES = ("INSERT", "UPDATE", "DELETE", "CREATE", "COPY", "BEGIN", "MERGE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One statement of a handler, and where its rows go."""

    select: SqlText | None
    """None: what is said is wrong."""
    window: Window | None = None
    """The one that it fills."""
    sink: SinkSpec
    path: Path
    """Where the sink stands."""
    name: str = "rows"
    """What its output is called among others."""


def handler_parts(said: Said, mistakes: Mistakes) -> tuple[Part, ...]:
    """Return what a handler gives, in the order of its statements."""
    sql = said.sql(*HANDLER, "sql")
    try:
        found = list(statements(sql))
    except ModelError:
        return (_of_pipeline(said, sql),)  # who plans it says what is wrong
    if said.spec.tables.sql:
        return tuple(_of_tables(said, found, mistakes))
    return (_of_pipeline(said, _one_of(found, sql, mistakes)),)


def _of_pipeline(said: Said, select: SqlText | None) -> Part:
    return Part(select=select, sink=said.spec.pipeline.sink, path=("pipeline", "sink"))


def _one_of(found: list[SqlText], sql: SqlText, mistakes: Mistakes) -> SqlText | None:
    if len(found) != 1:
        mistakes.add(
            f"the handler holds {len(found)} statements",
            found[1].at if len(found) > 1 else sql.at,
            "write one SELECT: each batch is exactly once without BEGIN and COMMIT",
        )
        return None
    return None if _writes(found[0], mistakes) else found[0]


def _writes(statement: SqlText, mistakes: Mistakes) -> bool:
    """Refuse a statement that changes something itself."""
    first = _first_word(statement)
    if first not in _WRITES:
        return False
    mistakes.add(
        f"the handler is {first}, and writes something itself",
        statement.at,
        "write the SELECT alone, and a sink of type postgres or sqlcommand",
    )
    return True


def _first_word(statement: SqlText) -> str:
    return statement.text.split(None, 1)[0].upper()


def _of_tables(said: Said, found: list[SqlText], mistakes: Mistakes) -> Iterator[Part]:
    tables, before = managed_tables(said, mistakes), len(mistakes.found)
    filled, selects = dict[str, SqlText](), list[SqlText]()
    for statement in found if len(tables) == len(said.spec.tables.sql) else ():
        name = filled_table(statement)
        if name is not None:
            _note(name, statement, tables, filled, mistakes)
        elif _first_word(statement) in ("SELECT", "WITH", "FROM"):
            selects.append(statement)
        elif _first_word(statement) != "INSERT":
            _writes(statement, mistakes)
    if len(selects) > 1:
        mistakes.add(
            "the handler holds two SELECT whose rows leave",
            selects[1].at,
            "write one, to the sink of the pipeline, beside those that fill tables",
        )
    whole = len(mistakes.found) == before and len(tables) == len(said.spec.tables.sql)
    for name, managed in tables.items():
        window = None
        if name in filled:
            window = lower_window(managed, filled[name], mistakes)
        elif whole:
            _not_filled(said, managed.table.name, mistakes)
        yield Part(
            select=window.select if window is not None else None,
            window=window,
            sink=managed.closing.sink,
            path=managed.closing.sink_path,
            name=managed.table.name,
        )
    if selects:
        yield _of_pipeline(said, selects[0])


def _note(
    name: str,
    statement: SqlText,
    tables: Mapping[str, Managed],
    filled: dict[str, SqlText],
    mistakes: Mistakes,
) -> None:
    """Note what fills a table."""
    if name.lower() not in tables:
        known = listed([managed.table.name for managed in tables.values()])
        mistakes.add(f"there is no table '{name}' with a window", statement.at, f"known: {known}")
    elif name.lower() in filled:
        mistakes.add(
            f"the table '{name}' is filled twice",
            statement.at,
            "write one INSERT, whose SELECT reads both; or a table for each",
        )
    else:
        filled[name.lower()] = statement


def _not_filled(said: Said, table: str, mistakes: Mistakes) -> None:
    mistakes.add(
        f"the handler does not fill the table '{table}'",
        said.sql(*HANDLER, "sql").at,
        f"write INSERT INTO {table} BY NAME SELECT … FROM batch GROUP BY …",
    )

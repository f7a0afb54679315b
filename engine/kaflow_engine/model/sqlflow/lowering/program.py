"""A SQLFlow file → the keys of a pipeline file, and what it brings of the configuration."""

from dataclasses import dataclass

from kaflow_engine.errors import ModelError
from kaflow_engine.model.brought.settings import Brought, Setting
from kaflow_engine.model.files.tree import Entries, Entry
from kaflow_engine.model.pipelines.contract import FunctionKindOf
from kaflow_engine.model.sqlflow.lowering.commands import Commands, read_commands
from kaflow_engine.model.sqlflow.lowering.handler_sql import METADATA, HandlerSql, read_handler
from kaflow_engine.model.sqlflow.lowering.handler_texts import as_query, as_run, below_run
from kaflow_engine.model.sqlflow.lowering.letters import dead_letters
from kaflow_engine.model.sqlflow.lowering.lookups import looked_up
from kaflow_engine.model.sqlflow.lowering.said import (
    Mistakes,
    Said,
    SqlText,
    entry,
    listed,
    mapping,
    sql_entry,
)
from kaflow_engine.model.sqlflow.lowering.sinks import Sink, lower_sink
from kaflow_engine.model.sqlflow.lowering.sources import (
    Source,
    Typed,
    free_name,
    lower_source,
    pipeline_name,
)
from kaflow_engine.model.sqlflow.lowering.statements import statements
from kaflow_engine.model.sqlflow.lowering.windows import (
    Window,
    emitted,
    lower_window,
    managed_table,
    window_settings,
)
from kaflow_engine.model.sqlflow.specs import STRUCTURED

_HANDLER = ("pipeline", "handler")
_ROWS = "batch"
"""The relation with the messages of several topics, or with their places."""
_LOOKED_UP = "batch_with_tables"
_RUNS = "handler"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredFile:
    """What a file became."""

    name: str
    tree: Entries
    brought: Brought
    mistakes: tuple[ModelError, ...]


def lower_file(said: Said, function_kind: FunctionKindOf) -> LoweredFile:
    """Lower a file.

    Args:
        said: Whose form is right.
        function_kind: Knows the functions of the project.
    """
    mistakes, relations = Mistakes(), list[Entry]()
    _require_functions(said, function_kind, mistakes)
    commands = read_commands(said, mistakes)
    known = not mistakes.found and "commands" not in said.tree.misspelled
    batch, columns = _batch(said, commands, mistakes)
    window, sql = _text(said, mistakes)
    # what is wrong below would follow from what is wrong above
    handler = HandlerSql(sql=said.sql(*_HANDLER, "sql"), tree=None)
    if sql is not None and known:
        handler = read_handler(sql, batch, commands.attached, mistakes)
    typed = Typed(
        columns=columns,
        at=said.at(*_HANDLER, "table") if batch != "batch" else said.at("pipeline", "source"),
        event_time=window.event_time if window is not None else None,
        idle_timeout=window.spec.idle_close_seconds if window is not None else None,
    )
    source = lower_source(said, typed, mistakes)
    query = handler.sql
    if source.names and not (handler.tree is not None and not handler.batches):
        rows = _rows(source, handler, relations)
        query = _query(said, source, handler, rows, window, relations, mistakes)
    lookups = looked_up(said, commands, handler, mistakes)
    path = ("pipeline", "sink") if window is None else (*window.path, "window", "sink")
    spec = said.spec.pipeline.sink if window is None else window.spec.sink
    sink = lower_sink(said, spec, path, source.brokers, mistakes)
    letters = dead_letters(said, source, spec, mistakes)
    read = (*source.entries, *lookups.entries)
    tree = _tree(said, read, query, sink, letters.entries, relations)
    settings = (
        *(*lookups.settings, *source.settings, *sink.settings, *letters.settings),
        *_others(said),
    )
    return LoweredFile(
        name=pipeline_name(said),
        tree=tree,
        brought=Brought(settings=settings, openings=lookups.openings),
        mistakes=tuple(mistakes.found),
    )


def _require_functions(said: Said, function_kind: FunctionKindOf, mistakes: Mistakes) -> None:
    for number, udf in enumerate(said.spec.udfs):
        if function_kind(udf.function_name) is None:
            module, _, name = udf.import_path.rpartition(".")
            mistakes.add(
                f"the Python function '{udf.function_name}' is not known: a pipeline file cannot "
                "load code",
                said.at("udfs", number),
                f"write @function (kaflow_engine.api.functions) above {name or udf.function_name}, "
                f"and functions: [{module or udf.import_path}] in kaflow.yaml",
            )


def _batch(said: Said, commands: Commands, mistakes: Mistakes) -> tuple[str, dict[str, str] | None]:
    """Return what the SQL calls the batch, and the columns of it that are declared."""
    handler, source = said.spec.pipeline.handler, said.spec.pipeline.source
    if handler.type != STRUCTURED:
        return "batch", source.columns
    at = said.at(*_HANDLER, "type")
    if handler.table is None:
        mistakes.add(
            "'pipeline.handler.table' is required",
            at,
            "name the table that a command declares: CREATE TABLE source (event VARCHAR)",
        )
        return "batch", source.columns
    declared = commands.tables.get(handler.table.lower())
    if declared is None:
        mistakes.add(
            f"no command declares the table '{handler.table}'",
            said.at(*_HANDLER, "table"),
            f"declared: {listed(list(commands.tables))}; write a command CREATE TABLE "
            f"{handler.table} (event VARCHAR)",
        )
        return handler.table, source.columns
    return handler.table, dict(declared.columns)


def _text(said: Said, mistakes: Mistakes) -> tuple[Window | None, SqlText | None]:
    """Return the window that is filled, if there is one, and the SELECT of the handler; None: it
    has none that could be read."""
    if not said.spec.tables.sql:
        return None, _one_statement(said, mistakes)
    managed = managed_table(said, mistakes)
    if managed is None:
        return None, None
    window = lower_window(said, *managed, said.sql(*_HANDLER, "sql"), mistakes)
    return window, window.select if window is not None else None


def _one_statement(said: Said, mistakes: Mistakes) -> SqlText | None:
    sql = said.sql(*_HANDLER, "sql")
    try:
        found = list(statements(sql))
    except ModelError:
        return sql  # who plans it says what is wrong
    if len(found) != 1:
        mistakes.add(
            f"the handler holds {len(found)} statements",
            found[1].at if len(found) > 1 else sql.at,
            "write one SELECT: each batch is exactly once without BEGIN and COMMIT",
        )
        return None
    first = found[0].text.split(None, 1)[0].upper()
    if first in ("INSERT", "UPDATE", "DELETE", "CREATE", "COPY", "BEGIN", "MERGE"):
        mistakes.add(
            f"the handler is {first}, and writes something itself",
            found[0].at,
            "write the SELECT alone, and a sink of type postgres or sqlcommand",
        )
        return None
    return found[0]


def _rows(source: Source, handler: HandlerSql, relations: list[Entry]) -> str:
    """Return what has the rows of all batches: a topic, or a relation over several."""
    places = handler.metadata if source.brokers is not None else ()
    if len(source.names) == 1 and not places:
        return source.names[0]
    at = handler.sql.at
    selected = ", ".join(["*", *(f"{METADATA[name]} AS {name}" for name in places)])
    queries = (f'SELECT {selected} FROM "{name}"' for name in source.names)
    query = sql_entry("query", " UNION ALL ".join(queries), at)
    name = free_name(_ROWS, source)
    relations.append(entry(name, mapping(at, query), at))
    return name


def _query(
    said: Said,
    source: Source,
    handler: HandlerSql,
    rows: str,
    window: Window | None,
    relations: list[Entry],
    mistakes: Mistakes,
) -> SqlText:
    """Return the query of what leaves."""
    if window is not None:
        filled = as_query(handler, rows)
        settings = window_settings(said, window, mistakes)
        query = sql_entry("query", filled.text, filled.at)
        value = mapping(filled.at, query, *settings)
        name = free_name(window.table.name, source)
        relations.append(entry(name, value, said.at(*window.path)))
        return emitted(said, window, name, mistakes)
    if handler.is_alone:
        return as_query(handler, rows)
    if handler.lookups:
        below = below_run(handler, rows, mistakes)
        query = sql_entry("query", below.text, below.at)
        name = free_name(_LOOKED_UP, source)
        relations.append(entry(name, mapping(below.at, query), below.at))
        rows = name
    pipeline, at = said.spec.pipeline, said.at(*_HANDLER)
    size = {"size": pipeline.batch_size, "every": f"{pipeline.flush_interval_seconds}s"}
    run = as_run(handler)
    value = mapping(
        at,
        entry("from", rows, at),
        entry("batch", size, said.at("pipeline", "batch_size")),
        sql_entry("query", run.text, run.at),
    )
    name = free_name(_RUNS, source)
    relations.append(entry(name, value, at))
    return SqlText(text=f"SELECT * FROM {name}", at=run.at)


def _others(said: Said) -> list[Setting]:
    """Return what else a file says of how its pipeline runs."""
    pipeline, found = said.spec.pipeline, list[Setting]()
    if pipeline.schema_registry is not None:
        at = said.at("pipeline", "schema_registry", "url")
        url = pipeline.schema_registry.url
        found.append(Setting(path=("kafka", "schema_registry"), value=url, at=at))
    if pipeline.drain_deadline_seconds is not None:
        at = said.at("pipeline", "drain_deadline_seconds")
        milliseconds = pipeline.drain_deadline_seconds * 1000
        found.append(Setting(path=("drain_deadline",), value=milliseconds, at=at))
    return found


def _tree(
    said: Said,
    read: tuple[Entry, ...],
    query: SqlText,
    sink: Sink,
    letters: tuple[Entry, ...],
    relations: list[Entry],
) -> Entries:
    start = said.start
    entries = [entry("name", pipeline_name(said), said.at("pipeline", "name"))]
    if said.spec.pipeline.description is not None:
        at = said.at("pipeline", "description")
        entries.append(entry("description", said.spec.pipeline.description, at))
    if relations:
        entries.append(entry("relations", mapping(start, *relations), start))
    entries += [sql_entry("query", query.text, query.at), sink.output, *letters]
    inner = [each.value for each in read if each.key == "sources"]
    sources = [one for some in inner if isinstance(some, Entries) for one in some.entries]
    if sources:
        entries.append(entry("sources", mapping(start, *sources), start))
    entries += [each for each in read if each.key != "sources"]
    return mapping(start, *entries)

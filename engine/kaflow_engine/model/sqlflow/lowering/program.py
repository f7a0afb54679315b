"""A SQLFlow file → the keys of a pipeline file, and what it brings of the configuration."""

from collections.abc import Sequence
from dataclasses import dataclass

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.brought.settings import Brought, Opening, Setting
from kaflow_engine.model.files.tree import Entries, Entry, Items
from kaflow_engine.model.pipelines.contract import FunctionKindOf
from kaflow_engine.model.sqlflow.lowering.clusters import Clusters
from kaflow_engine.model.sqlflow.lowering.commands import Commands, command_line, read_commands
from kaflow_engine.model.sqlflow.lowering.handler_sql import METADATA, HandlerSql, read_handler
from kaflow_engine.model.sqlflow.lowering.handler_texts import (
    above_lookups,
    as_query,
    as_run,
    below_run,
)
from kaflow_engine.model.sqlflow.lowering.letters import dead_letters
from kaflow_engine.model.sqlflow.lowering.lookups import looked_up
from kaflow_engine.model.sqlflow.lowering.parts import HANDLER, handler_parts
from kaflow_engine.model.sqlflow.lowering.said import (
    Mistakes,
    Said,
    SqlText,
    entry,
    listed,
    mapping,
    sql_entry,
)
from kaflow_engine.model.sqlflow.lowering.sinks import lower_sink
from kaflow_engine.model.sqlflow.lowering.sources import (
    Source,
    free_name,
    lower_source,
    pipeline_name,
)
from kaflow_engine.model.sqlflow.lowering.times import rows_by_time, typed_by
from kaflow_engine.model.sqlflow.lowering.windows.window import Window, emitted, window_settings
from kaflow_engine.model.sqlflow.specs import STRUCTURED

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
    commands = read_commands(said, len(said.spec.commands), mistakes)
    known = not mistakes.found and "commands" not in said.tree.misspelled
    batch, columns = _batch(said, commands, mistakes)
    parts = handler_parts(said, mistakes)
    # what is wrong below would follow from what is wrong above
    handlers = [
        read_handler(part.select, batch, commands, mistakes)
        if part.select is not None and known
        else HandlerSql(sql=said.sql(*HANDLER, "sql"), tree=None)
        for part in parts
    ]
    windows = [part.window for part in parts if part.window is not None]
    clusters = Clusters(said=said, pipeline=pipeline_name(said), mistakes=mistakes)
    typed = typed_by(said, batch, columns, windows)
    source = lower_source(said, typed, clusters, mistakes)
    outputs, brought, openings = list[Entries](), list[Setting](), list[Opening]()
    rows = _rows(source, handlers, relations)
    for part, handler in zip(parts, handlers, strict=True):
        sink = lower_sink(said, part, clusters, mistakes)
        brought += sink.settings
        openings += sink.openings
        if source.names and not (handler.tree is not None and not handler.batches):
            own = rows_by_time(said, part.window, source, typed, rows, relations, mistakes)
            query = _query(said, source, handler, own, part.window, relations, mistakes)
            leaving = sql_entry("query", query.text, query.at)
            outputs.append(mapping(sink.at, leaving, *sink.keys))
    lookups = looked_up(said, commands, handlers, mistakes)
    letters = dead_letters(said, clusters, mistakes)
    read = (*source.entries, *lookups.entries)
    tree = _tree(said, read, outputs, letters.entries, relations)
    settings = (
        *(*lookups.settings, *clusters.settings, *source.settings, *brought, *letters.settings),
        *(*commands.store.settings, *_others(said)),
    )
    return LoweredFile(
        name=pipeline_name(said),
        tree=tree,
        brought=Brought(
            settings=settings,
            openings=(*lookups.openings, *openings),
            columns_key="pipeline.source.columns",
            starting=tuple(map(command_line, said.spec.commands)),
            ready=f"{pipeline_name(said)} waits for messages of {' and '.join(source.names)}",
        ),
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
    at = said.at(*HANDLER, "type")
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
            said.at(*HANDLER, "table"),
            f"declared: {listed(list(commands.tables))}; write a command CREATE TABLE "
            f"{handler.table} (event VARCHAR)",
        )
        return handler.table, source.columns
    return handler.table, dict(declared.columns)


def _rows(source: Source, handlers: Sequence[HandlerSql], relations: list[Entry]) -> str:
    """Return what has the rows of all batches: a topic, or a relation over several."""
    named = {name for handler in handlers for name in handler.metadata}
    places = [name for name in METADATA if name in named and source.is_kafka]
    if len(source.names) < 2 and not places:
        return next(iter(source.names), "")
    at = handlers[0].sql.at
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
        if handler.lookups:
            name = free_name(f"{window.name}_with_tables", source)
            filled = above_lookups(handler, name)
            # on another line than the groups, whose settings are found by where they stand
            _look_up(handler, rows, name, relations, mistakes, said.at(*HANDLER))
        query = sql_entry("query", filled.text, filled.at)
        value = mapping(filled.at, query, *window_settings(window))
        name = free_name(window.name, source)
        relations.append(entry(name, value, said.at(*window.managed.path)))
        return emitted(window, name, mistakes)
    if handler.is_alone:
        return as_query(handler, rows)
    if handler.lookups:
        name = free_name(_LOOKED_UP, source)
        rows = _look_up(handler, rows, name, relations, mistakes, handler.sql.at)
    pipeline, at = said.spec.pipeline, said.at(*HANDLER)
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


def _look_up(
    handler: HandlerSql,
    rows: str,
    name: str,
    relations: list[Entry],
    mistakes: Mistakes,
    at: Location,
) -> str:
    """Add a relation of rows with what they look up, and return its name."""
    below = below_run(handler, rows, mistakes)
    relations.append(entry(name, mapping(at, sql_entry("query", below.text, at)), at))
    return name


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
    outputs: Sequence[Entries],
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
    entries += [*_written(start, outputs), *letters]
    inner = [each.value for each in read if each.key == "sources"]
    sources = [one for some in inner if isinstance(some, Entries) for one in some.entries]
    if sources:
        entries.append(entry("sources", mapping(start, *sources), start))
    entries += [each for each in read if each.key != "sources"]
    return mapping(start, *entries)


def _written(start: Location, outputs: Sequence[Entries]) -> list[Entry]:
    """Return the keys that name outputs, each of which begins with its query."""
    if len(outputs) != 1:
        listed_ones = Items(at=start, items=tuple(outputs))
        return [Entry(key="outputs", at=start, value=listed_ones)]
    query, *others = outputs[0].entries
    at = outputs[0].at
    return [query, entry("output", mapping(at, *others), at)]

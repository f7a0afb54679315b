"""Transforms of a file → relations of a pipeline."""

from typing import assert_never

from kaflow_engine.errors import SqlError
from kaflow_engine.model.configuration.streamling.names import plugin_id
from kaflow_engine.model.files.tree import Scalar, find
from kaflow_engine.model.relations.script_fields import fields_set
from kaflow_engine.model.streamling.lowering.context import Lowering, placed
from kaflow_engine.model.streamling.lowering.parts import Placed, said
from kaflow_engine.model.streamling.node_specs import PluginReadingSpec
from kaflow_engine.model.streamling.operations import OPERATION, Rows, facts_of
from kaflow_engine.model.streamling.specs import (
    AnyTransform,
    DynamicTable,
    HandlerTransform,
    ScriptTransform,
    SqlTransform,
)
from kaflow_engine.model.streamling.sql.functions import rewritten
from kaflow_engine.model.streamling.sql.rows import lowered_sql
from kaflow_engine.model.streamling.sql.text import SqlText
from kaflow_engine.model.streamling.sql.uuid import uuid_calls, with_uuids
from kaflow_engine.model.streamling.topology import Node

POSTGRES = "postgres_sink"
"""The connection of sinks and dynamic tables."""


def lower_transform(work: Lowering, node: Node) -> None:
    """Add what a transform is; errors are collected."""
    spec: AnyTransform = node.spec  # pyright: ignore[reportAssignmentType]
    name = work.parts.free(node.name)
    if not isinstance(spec, SqlTransform | DynamicTable):
        if work.rows[node.name].kind == "table":
            work.refuse(
                node,
                "from",
                f"'{node.name}' would get rows of '{spec.from_}' that change and go",
                "put it before what groups or joins them",
            )
            return
    match spec:
        case SqlTransform():
            work.relation(node, name, {"query": _query(work, node, work.rows[node.name])})
        case DynamicTable():
            _dynamic_table(work, node, spec, name)
        case HandlerTransform():
            work.relation(node, name, _handler(work, node, spec))
        case ScriptTransform():
            about = {
                "type": "script",
                "from": placed(node, "from", work.called.get(spec.from_, spec.from_)),
                "language": placed(node, "language", spec.language),
                "script": _text(node, "script", spec.script),
                "schema": placed(node, "schema", dict(spec.schema_)) if spec.schema_ else None,
            }
            work.relation(node, name, about)
            work.parts.adds[name] = fields_set(spec.script)
        case PluginReadingSpec():
            about = {
                "type": placed(node, "type", plugin_id(spec.type)),
                "from": placed(node, "from", work.called.get(spec.from_, spec.from_)),
                "options": placed(node, "options", dict(spec.options)) if spec.options else None,
            }
            work.relation(node, name, about)
        case _:
            assert_never(spec)
    work.called[node.name] = name


def _text(node: Node, key: str, text: str) -> Placed:
    found = find(node.tree, (node.section, node.name, key))
    return Placed(text, found.at if isinstance(found, Scalar) else node.place(key))


def _query(work: Lowering, node: Node, result: Rows) -> Placed:
    """Return the SQL of a node over relations."""
    assert node.sql is not None
    own, wrong = rewritten(node.sql, node.sql_place)
    work.parts.mistakes += wrong
    _require_records(work, node, node.sql)
    sql = SqlText(with_uuids(SqlText(own), node.name))
    inputs = work.inputs(node, rows_stay=not facts_of(node.sql).grouped)
    return Placed(lowered_sql(sql, inputs, result), node.sql_at)


def _require_records(work: Lowering, node: Node, sql: SqlText) -> None:
    """Refuse `uuid7()` where several rows come of one record, or rows of no record."""
    for place in uuid_calls(sql):
        at = node.sql_place(sql.words[place].start)
        if sql.words[place + 2 : place + 3] and sql.words[place + 2].kind != "R_PAREN":
            wrong = SqlError("'uuid7' takes no arguments", at, "write uuid7()")
            work.parts.mistakes.append(wrong)
        elif (reason := _no_record(work, node)) is not None:
            hint = "call it before, in a query that reads the records"
            wrong = SqlError(f"'uuid7' is of a record, and {reason}", at, hint)
            work.parts.mistakes.append(wrong)


def _no_record(work: Lowering, node: Node) -> str | None:
    assert node.sql is not None
    facts = facts_of(node.sql)
    if facts.grouped:
        return "a group is of many"
    if facts.joined or any(work.rows[n].kind == "table" for n in node.reads if n in work.rows):
        return "these rows are of several"
    above = (node, *work.graph.above(node))
    if any(each.sql is not None and facts_of(each.sql).unnested for each in above):
        return "unnest makes several rows of one"
    return None


def _handler(work: Lowering, node: Node, spec: HandlerTransform) -> dict[str, object]:
    enveloped = spec.payload_version == "1"
    varies = enveloped and work.rows[node.name].kind == "rows"
    single = spec.one_row_per_request
    return {
        "type": "handler",
        "from": placed(node, "from", work.called.get(spec.from_, spec.from_)),
        "url": placed(node, "url", spec.url),
        "headers": placed(node, "headers", dict(spec.headers)) if spec.headers else None,
        "secret_headers": placed(node, "secret_headers", dict(spec.secret_headers))
        if spec.secret_headers
        else None,
        "batch": None if single else min(spec.batch_size or work.settings.most_rows, 10_000),
        "concurrency": work.settings.concurrency,
        "timeout": f"{work.settings.timeout}s",
        "envelope": placed(node, "payload_version", "metadata") if enveloped else None,
        "op_column": OPERATION if varies else None,
        "schema": placed(node, "schema_override", dict(spec.schema_override))
        if spec.schema_override
        else None,
    }


def _dynamic_table(work: Lowering, node: Node, spec: DynamicTable, name: str) -> None:
    if not any(True for _ in work.graph.readers(node.name)):
        return  # nothing asks it, and it is kept nowhere else
    if spec.sql is None and spec.backend_type == "inmemory":
        work.refuse(
            node,
            "backend_type",
            f"nothing fills '{node.name}': it has no sql, and no database behind it",
            "add sql: SELECT <column> FROM <source>, or write backend_type: Postgres",
        )
        return
    if spec.sql is None:
        source = work.parts.free(f"{node.name}.rows")
        about = {
            "type": "postgres",
            "connection": POSTGRES,
            "table_name": placed(
                node, "backend_entity_name", f"{spec.schema_}.{spec.backend_entity_name}"
            ),
            "attached": True,
            "columns": {spec.column: "VARCHAR"},
        }
        work.parts.sources[source] = said(node.place(), about)
        column = spec.column
    else:
        source = work.parts.free(f"{node.name} values")
        before = [work.rows[each] for each in node.reads if each in work.rows]
        kind = before[0].kind if before else "inserts"
        kind = "table" if kind == "rows" else kind
        work.relation(node, source, {"query": _query(work, node, Rows(kind=kind, key=()))})
        column = _one_column(work, node)
    table = {"type": "dynamic_table", "from": source, "key": placed(node, "sql", column)}
    work.relation(node, name, table)


def _one_column(work: Lowering, node: Node) -> str:
    """Return the column that a query for a dynamic table selects."""
    assert node.sql is not None
    top = next((select for select in node.sql.selects if select.role == "top"), None)
    items = node.sql.split(top.items, "COMMA") if top is not None else []
    last = node.sql.words[items[0].stop - 1] if len(items) == 1 and items[0] else None
    if last is None or not last.is_name:
        work.refuse(
            node,
            "sql",
            f"the query of the dynamic table '{node.name}' selects no single named column",
            "write SELECT <column> FROM <source>; an expression needs AS <name>",
        )
        return "_"
    return last.text

"""Sinks of a file → outputs of a pipeline."""

from collections.abc import Mapping
from typing import assert_never

from kaflow_engine.model.configuration.streamling.names import plugin_id
from kaflow_engine.model.streamling.lowering.context import Lowering, key_of, placed
from kaflow_engine.model.streamling.lowering.parts import said
from kaflow_engine.model.streamling.lowering.sources import HEADER
from kaflow_engine.model.streamling.lowering.transforms import POSTGRES
from kaflow_engine.model.streamling.node_specs import PluginReadingSpec
from kaflow_engine.model.streamling.operations import OPERATION, Rows
from kaflow_engine.model.streamling.specs import (
    AnySink,
    BlackholeSink,
    ClickHouseSink,
    KafkaSink,
    PostgresAggregateSink,
    PostgresSink,
    PrintSink,
    WebhookSink,
)
from kaflow_engine.model.streamling.sql.rows import quoted
from kaflow_engine.model.streamling.topology import Node

CLICKHOUSE = "clickhouse_sink"
"""The connection of sinks."""
_DELETED = "is_deleted"
"""How tables of Streamling call the column that says whether a row is gone."""


def lower_sink(work: Lowering, node: Node) -> None:
    """Add what a sink is; errors are collected."""
    spec: AnySink = node.spec  # pyright: ignore[reportAssignmentType]
    rows = work.rows[spec.from_]
    match spec:
        case PrintSink():
            every = spec.sample_every or work.settings.sample_every
            about = {"sample_every": placed(node, "sample_every", every)} if every > 1 else {}
            key = known_key(rows)
            _write(work, node, {"type": "console", "name": node.name, **about, **key})
        case BlackholeSink():
            _write(work, node, {"type": "blackhole", "name": node.name, **known_key(rows)})
        case WebhookSink():
            _webhook(work, node, spec)
        case PostgresSink():
            _postgres(work, node, spec)
        case PostgresAggregateSink():
            _aggregate(work, node, spec)
        case KafkaSink():
            _kafka(work, node, spec)
        case ClickHouseSink():
            _clickhouse(work, node, spec)
        case PluginReadingSpec():
            options = placed(node, "options", dict(spec.options)) if spec.options else None
            kind = placed(node, "type", plugin_id(spec.type))
            about = {"type": kind, "name": node.name, "options": options, **known_key(rows)}
            _write(work, node, about)
        case _:
            assert_never(spec)


def known_key(rows: Rows) -> dict[str, object]:
    """Return the key of rows that replace each other, where it is one column."""
    replaced = rows.kind in ("changes", "table") and len(rows.key) == 1
    return {"key": rows.key[0]} if replaced else {}


def _write(
    work: Lowering, node: Node, about: Mapping[str, object], query: str | None = None
) -> None:
    """Add an output that writes the rows which a sink reads."""
    relation = work.called[node.reads[0]]
    text = query or f"SELECT * FROM {quoted(relation)}"
    work.parts.outputs.append(said(node.place(), {"query": placed(node, "from", text), **about}))


def _table(work: Lowering, node: Node, about: Mapping[str, object]) -> None:
    """Add an output that is a table of a database, with a row for each key."""
    name = node.reads[0]
    rows = work.rows[name]
    key = key_of(node, rows)
    if not key:
        work.refuse(
            node,
            "type",
            f"'{node.name}' has no primary_key, and neither has what it reads",
            "add primary_key: <column>",
        )
        return
    where = "primary_key" if node.spec.primary_key else "from"
    about = {**about, "key": placed(node, where, list(key))}
    if rows.kind == "inserts":
        _write(work, node, {**about, "mode": "upsert"})
    elif rows.kind == "rows":
        there = work.last_rows(node, name, key)
        _write(work, node, about, f"SELECT * FROM {quoted(there)}")
    else:
        _write(work, node, about)


def _postgres(work: Lowering, node: Node, spec: PostgresSink) -> None:
    _table(
        work,
        node,
        {
            "type": "postgres",
            "connection": POSTGRES,
            "table": placed(node, "table", f"{spec.schema_}.{spec.table}"),
            "create": True,
            **_conflicts(work, node, spec),
        },
    )


def _conflicts(work: Lowering, node: Node, spec: PostgresSink) -> dict[str, object]:
    """Return what becomes of rows whose key is there, where each of them decides."""
    if spec.on_conflict == "update" and not spec.update_where:
        return {}
    if spec.on_conflict == "nothing" and spec.update_where:
        work.refuse(
            node,
            "update_where",
            "'update_where' says when rows are updated, and 'on_conflict: nothing' that none is",
            "remove one of the two",
        )
    changes = work.rows[spec.from_].kind in ("rows", "table")
    return {
        "on_conflict": placed(node, "on_conflict", spec.on_conflict),
        "update_where": placed(node, "update_where", dict(spec.update_where))
        if spec.update_where
        else None,
        "coalesce": "none" if changes else None,
    }


def _clickhouse(work: Lowering, node: Node, spec: ClickHouseSink) -> None:
    if not spec.append_only_mode:
        work.refuse(
            node,
            "append_only_mode",
            "'append_only_mode: false' is not there: rows are replaced by their version",
            "remove it, and read the table with FINAL",
        )
    own = (
        {
            "version_column": placed(node, "version_column_name", spec.version_column_name),
            "deleted_column": placed(node, "version_column_name", _DELETED),
        }
        if spec.version_column_name
        else {}
    )
    _table(
        work,
        node,
        {
            "type": "clickhouse",
            "connection": CLICKHOUSE,
            "table": placed(node, "table", spec.table),
            "create": True,
            **own,
        },
    )


def _kafka(work: Lowering, node: Node, spec: KafkaSink) -> None:
    rows = work.rows[spec.from_]
    key = key_of(node, rows)
    if not key:
        work.refuse(
            node,
            "type",
            f"'{node.name}' has no key: neither it nor what it reads has a primary_key",
            "add primary_key: <column>",
        )
        return
    partitions = spec.topic_partitions
    about = {
        "topic": placed(node, "topic", spec.topic),
        "cluster": work.settings.sink_cluster,
        "format": placed(node, "data_format", spec.data_format),
        "key": placed(node, "primary_key" if node.spec.primary_key else "from", list(key)),
        "new_topic": placed(node, "topic_partitions", {"partitions": partitions})
        if partitions
        else None,
    }
    if rows.kind in ("changes", "table"):
        _write(work, node, {**about, "operation": f"header:{HEADER}"})
        return
    relation = quoted(work.called[spec.from_])
    operation, left = "'c'", "*"
    if rows.kind == "rows":
        operation = f"CASE {OPERATION} WHEN 'i' THEN 'c' ELSE {OPERATION} END"
        left = f"* EXCLUDE ({OPERATION})"
    headers = f"MAP {{'{HEADER}': encode({operation})}} AS _headers"
    _write(work, node, about, f"SELECT {left}, {headers} FROM {relation}")


def _webhook(work: Lowering, node: Node, spec: WebhookSink) -> None:
    single = spec.one_row_per_request
    about = {
        "type": "webhook",
        "name": node.name,
        "url": placed(node, "url", spec.url),
        "batch": None if single else min(spec.batch_size or work.settings.most_rows, 10_000),
        "headers": placed(node, "headers", dict(spec.headers)) if spec.headers else None,
    }
    if spec.payload_version == "1":
        varies = work.rows[spec.from_].kind == "rows"
        about |= {
            "envelope": placed(node, "payload_version", "metadata"),
            "op_column": OPERATION if varies else None,
        }
    _write(work, node, about)


_AGGREGATES = {"avg": ("sum", "count")}
"""Those of which two columns are kept."""


def _aggregate(work: Lowering, node: Node, spec: PostgresAggregateSink) -> None:
    rows = work.rows[spec.from_]
    relation = work.called[spec.from_]
    if rows.kind == "rows":
        key = key_of(node, rows)
        if not key:
            work.refuse(node, "type", f"'{node.name}' has no primary_key", "add primary_key: <c>")
            return
        relation = work.last_rows(node, spec.from_, key)
    items = [
        f"{_typed(quoted(about.from_ or name), about.type)} AS {quoted(name)}"
        for name, about in spec.group_by.items()
    ]
    items, adds = items or ["'all' AS key"], dict[str, str]()
    for name, about in spec.aggregate.items():
        of = quoted(about.from_ or name)
        if about.fn == "count":
            of = quoted(about.from_) if about.from_ else "*"
        for fn in _AGGREGATES.get(about.fn, (about.fn,)):
            column = name if fn == about.fn else f"{name}_{fn}"
            adds[column] = "sum" if fn == "count" else fn
            items.append(
                f"{_typed(f'{fn}({of})', about.type if fn != 'count' else None)}"
                f" AS {quoted(column)}"
            )
    _landing(work, node, spec)
    keys = list(spec.group_by) or ["key"]
    grouped = ", ".join(map(str, range(1, len(keys) + 1)))
    about = {
        "type": "postgres",
        "connection": POSTGRES,
        "table": placed(node, "agg_table", f"{spec.schema_}.{spec.agg_table}"),
        "create": True,
        "adds": placed(node, "aggregate", adds),
        "key": placed(node, "group_by", keys),
    }
    _write(
        work, node, about, f"SELECT {', '.join(items)} FROM {quoted(relation)} GROUP BY {grouped}"
    )


def _landing(work: Lowering, node: Node, spec: PostgresAggregateSink) -> None:
    """Add the table of the rows that came last, with what each does and the number of its batch.

    Rows of tables, behind groups and joins, come and go, and have none.
    """
    rows = work.rows[spec.from_]
    key = key_of(node, rows)
    if rows.kind not in ("rows", "inserts") or not key:
        return
    given = "" if rows.kind == "rows" else f", 'i' AS {OPERATION}"
    about = {
        "query": placed(node, "from", f"SELECT *{given} FROM {quoted(work.called[spec.from_])}"),
        "type": "postgres",
        "connection": POSTGRES,
        "table": placed(node, "landing_table", f"{spec.schema_}.{spec.landing_table}"),
        "create": True,
        "key": placed(node, "primary_key", [*key, OPERATION]),
        "mode": "upsert",
        "batch_column": "_gs_checkpoint_epoch",
    }
    work.parts.landing.append(said(node.place(), about))


_TYPES = {"text": "VARCHAR", "numeric": "DECIMAL", "int8": "BIGINT", "int4": "INTEGER"}


def _typed(sql: str, kind: str | None) -> str:
    """Cast to a type that is said in the words of PostgreSQL."""
    if kind is None:
        return sql
    name, bracket, rest = kind.partition("(")
    own = _TYPES.get(name.strip().lower(), name.strip())
    own = "VARCHAR" if own.lower() in ("varchar", "character varying") else f"{own}{bracket}{rest}"
    return f"CAST({sql} AS {own})"

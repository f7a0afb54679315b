"""Sources of a file → topics, sources and relations of a pipeline."""

from collections.abc import Mapping
from typing import assert_never

from kaflow_engine.model.brought.settings import Setting
from kaflow_engine.model.configuration.streamling.names import plugin_id
from kaflow_engine.model.streamling.lowering.context import Lowering, placed
from kaflow_engine.model.streamling.lowering.parts import said
from kaflow_engine.model.streamling.node_specs import PluginNodeSpec
from kaflow_engine.model.streamling.operations import OPERATION, Rows
from kaflow_engine.model.streamling.source_specs import (
    ClickHouseSource,
    FileSource,
    HybridSource,
    KafkaSource,
)
from kaflow_engine.model.streamling.specs import (
    AnySource,
)
from kaflow_engine.model.streamling.sql.rows import Input, lowered_sql, quoted
from kaflow_engine.model.streamling.sql.text import SqlText
from kaflow_engine.model.streamling.topology import Node

HEADER = "dbz.op"
CLICKHOUSE = "clickhouse_source"
"""The connection of sources."""
_METADATA = (
    "_partition AS __kafka_partition",
    "_offset AS __kafka_offset",
    "_timestamp AS __kafka_timestamp",
)
_SAID = f"decode(_headers['{HEADER}'])"
_OF_HEADER = (
    f"CASE coalesce({_SAID}, 'c') WHEN 'c' THEN 'i' WHEN 'r' THEN 'i' WHEN 'i' THEN 'i' "
    "WHEN 'u' THEN 'u' WHEN 'd' THEN 'd' "
    f"ELSE error('unknown operation in the header {HEADER}: ' || {_SAID}) END"
)


def lower_source(work: Lowering, node: Node) -> None:
    """Add what a source is; errors are collected."""
    spec: AnySource = node.spec  # pyright: ignore[reportAssignmentType]
    match spec:
        case KafkaSource():
            _kafka(work, node, spec)
        case HybridSource():
            _hybrid(work, node, spec)
        case ClickHouseSource():
            _clickhouse(work, node, spec)
        case FileSource():
            source = {
                "type": "files",
                "path": placed(node, "path", spec.path),
                "format": placed(node, "format", spec.format),
                "columns": dict(spec.schema_) or None,
            }
            _source(work, node, source, ())
        case PluginNodeSpec():
            source = {
                "type": placed(node, "type", plugin_id(spec.type)),
                "options": placed(node, "options", dict(spec.options)) if spec.options else None,
            }
            _source(work, node, source, ())
        case _:
            assert_never(spec)
    if work.settings.job_mode and not isinstance(spec, ClickHouseSource | HybridSource):
        work.refuse(
            node,
            "type",
            f"'{node.name}' has no end, and this is a job",
            "in job mode each source is of type hybrid or clickhouse; or leave "
            "STREAMLING__JOB_MODE out",
        )


def _kafka(work: Lowering, node: Node, spec: KafkaSource) -> None:
    _start(work, node, spec)
    if spec.schema_ and spec.data_format == "avro":
        work.refuse(
            node,
            "schema",
            f"'schema' of '{node.name}' is for JSON: Avro records have that of the registry",
            "remove it, or write data_format: json",
        )
    rows = work.rows[node.name]
    changes = rows.kind in ("changes", "table")
    about = {
        "table": True if rows.kind == "table" else None,
        "format": placed(node, "data_format", spec.data_format),
        "columns": placed(node, "schema", dict(spec.schema_)) if spec.schema_ else None,
        "primary_key": placed(node, "primary_key", list(rows.key)) if changes else None,
        "operation": f"header:{HEADER}" if changes else None,
    }
    _one_reading(work, node, spec)
    work.parts.topics.setdefault(spec.topic, said(node.place(), about))
    work.read[node.name] = spec.topic
    beside = [
        *([] if changes else [f"{_OF_HEADER} AS {OPERATION}"]),
        *(_METADATA if spec.include_metadata else ()),
    ]
    if not beside and spec.filter is None and node.name == spec.topic:
        work.called[node.name] = spec.topic
        return
    query = f"SELECT {', '.join(['*', *beside])} FROM {quoted(spec.topic)}"
    if spec.filter is None:
        name = work.parts.free(node.name)
        work.relation(node, name, {"query": placed(node, "topic", query)})
    elif changes:
        name = work.parts.free(node.name)
        query += f" WHERE {spec.filter}"
        work.relation(node, name, {"query": placed(node, "filter", query)})
    else:
        all_rows = work.parts.free(f"{node.name} unfiltered")
        work.relation(node, all_rows, {"query": placed(node, "topic", query)})
        inputs = {all_rows: Input(relation=all_rows, rows=rows)}
        some = SqlText(f"SELECT * FROM {quoted(all_rows)} WHERE {spec.filter}")
        name = work.parts.free(node.name)
        work.relation(
            node, name, {"query": placed(node, "filter", lowered_sql(some, inputs, rows))}
        )
    work.called[node.name] = name


def _start(work: Lowering, node: Node, spec: KafkaSource) -> None:
    """Let the topics of the pipeline begin at their ends, where all sources say so."""
    if spec.starting_offsets != "latest":
        return
    for other in work.graph.nodes.values():
        if isinstance(other.spec, KafkaSource) and other.spec.starting_offsets != "latest":
            work.refuse(
                node,
                "starting_offsets",
                f"'{node.name}' begins at the end of its topic, and '{other.name}' at the first "
                "record: all topics of a file begin alike",
                "say starting_offsets: latest for all of them, or put them into files of their own",
            )
            return
    at = node.place("starting_offsets")
    path = ("kafka", "consumer", "auto_offset_reset")
    work.parts.settings[path] = Setting(path=path, value="latest", at=at)


def _one_reading(work: Lowering, node: Node, spec: KafkaSource) -> None:
    """Refuse two sources that say different things of the records of one topic."""
    for other in work.graph.nodes.values():
        if other is node:
            return
        if isinstance(other.spec, KafkaSource) and other.spec.topic == spec.topic:
            there = (other.spec.data_format, other.spec.schema_)
            if there != (spec.data_format, spec.schema_):
                work.refuse(
                    node,
                    "topic",
                    f"topic '{spec.topic}' has another data_format or schema at {other.place()}",
                    "say both alike: a topic is read once",
                )


def _source(
    work: Lowering,
    node: Node,
    source: Mapping[str, object],
    columns: tuple[str, ...],
    condition: str | None = None,
) -> None:
    """Add a source that is no topic, and a relation where some of its columns or rows are meant."""
    chosen = ", ".join(quoted(column) for column in columns) or "*"
    some = f" WHERE {condition}" if condition else ""
    _chosen(work, node, source, (chosen, some) if columns or condition else None)


def _chosen(
    work: Lowering, node: Node, source: Mapping[str, object], query: tuple[str, str] | None
) -> None:
    """Add a source, and a relation of what is selected of it, and where; None: it is all."""
    name = work.parts.free(f"{node.name}.all" if query else node.name)
    work.parts.sources[name] = said(node.place(), source)
    work.read[node.name] = name
    work.called[node.name] = name
    if query is not None:
        chosen, some = query
        relation = work.parts.free(node.name)
        text = f"SELECT {chosen} FROM {quoted(name)}{some}"
        work.relation(node, relation, {"query": placed(node, "columns", text)})
        work.called[node.name] = relation


def _clickhouse(work: Lowering, node: Node, spec: ClickHouseSource) -> None:
    source = {
        "type": "clickhouse",
        "connection": CLICKHOUSE,
        "table_name": placed(node, "table_name", spec.table_name),
        "where": placed(node, "filter", spec.filter) if spec.filter else None,
        "start_at": placed(node, "start_at", spec.start_at) if spec.start_at else None,
        "page_size": work.settings.page_size,
    }
    _source(work, node, source, spec.columns)


def _hybrid(work: Lowering, node: Node, spec: HybridSource) -> None:
    live, offsets = spec.unbounded_source, spec.offset_table
    job = work.settings.job_mode or live is None
    if job and len(spec.bounded_sources) == 1:
        (only,) = spec.bounded_sources
        table = ClickHouseSource(
            type="clickhouse",
            table_name=only.table_name,
            columns=only.columns,
            filter=only.filter,
            start_at=only.start_at,
        )
        _clickhouse(work, node, table)
        return
    registered = live is not None and live.data_format == "avro" and not job
    rows = work.rows[node.name]
    if not spec.schema_ and not registered:
        work.refuse(
            node,
            "bounded_sources",
            f"the columns of '{node.name}' are not known: what it reads must all have the same",
            "add schema: {<column>: <type>}; one table alone as a job needs none, nor does Avro",
        )
    phases = [
        {
            "type": "clickhouse",
            "connection": CLICKHOUSE,
            "table_name": each.table_name,
            "where": each.filter,
            "start_at": each.start_at,
            "page_size": work.settings.page_size,
        }
        for each in spec.bounded_sources
    ]
    handover: dict[str, object] | None = None
    if live is not None and not job:
        if offsets is not None:
            handover = {
                "columns": {"partition": offsets.partition_column, "offset": offsets.offset_column}
            }
        elif live.start_at in ("earliest", "latest"):
            handover = {"start_at": live.start_at}
        else:
            handover = {"time": live.start_at}
    source = {
        "type": "hybrid",
        "columns": dict(spec.schema_) or None,
        "phases": placed(
            node,
            "bounded_sources",
            [{k: v for k, v in phase.items() if v is not None} for phase in phases],
        ),
        "topic": live.topic if live is not None and not job else None,
        "topic_format": live.data_format if live is not None and not job else None,
        "handover": handover,
    }
    columns = {each.columns for each in spec.bounded_sources if each.columns}
    chosen = columns.pop() if len(columns) == 1 else ()
    # Rows of the tables are partition 0 of the source, and have filters of their own.
    some = f"_partition = 0 OR ({live.filter})" if live and not job and live.filter else None
    if rows.kind == "rows":
        listed = ", ".join(quoted(column) for column in chosen) or "*"
        _chosen(work, node, source, _with_operation(listed, some, rows))
    else:
        _source(work, node, {**source, **_changes(rows)}, chosen, some)


def _changes(rows: Rows) -> Mapping[str, object]:
    """Return what says of records which changes they are, where the engine is to know it."""
    if rows.kind == "inserts":
        return {}
    table = {"table": True} if rows.kind == "table" else {}
    return {**table, "primary_key": list(rows.key), "operation": f"header:{HEADER}"}


def _with_operation(listed: str, some: str | None, rows: Rows) -> tuple[str, str]:
    """Return what is selected with `_gs_op` as a column, and where: by a filter an update that
    does not pass deletes, and a delete always passes."""
    if some is None or not rows.key:
        where = f" WHERE {some}" if some else ""
        return f"{listed}, {_OF_HEADER} AS {OPERATION}", where
    now = f"CASE WHEN {_OF_HEADER} = 'u' AND ({some}) IS NOT TRUE THEN 'd' ELSE {_OF_HEADER} END"
    return f"{listed}, {now} AS {OPERATION}", f" WHERE ({some}) OR {_OF_HEADER} <> 'i'"

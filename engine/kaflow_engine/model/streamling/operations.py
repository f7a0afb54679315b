"""How `_gs_op` travels: which nodes have changes that the engine knows, and which have a column.

Changes of a topic stay changes through SQL: the engine filters them, knows their keys, and keeps
nothing. Scripts, services and queries that set `_gs_op` themselves read it as a column; what is
written by key behind them is the last row of each key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from kaflow_engine.model.configuration.streamling.names import plugin_id
from kaflow_engine.model.streamling.node_specs import (
    PluginNodeSpec,
    PluginReadingSpec,
)
from kaflow_engine.model.streamling.source_specs import HybridSource, KafkaSource
from kaflow_engine.model.streamling.specs import (
    DynamicTable,
    HandlerTransform,
    PostgresAggregateSink,
    ScriptTransform,
    SqlTransform,
    WebhookSink,
)
from kaflow_engine.model.streamling.sql.text import Select, SqlText
from kaflow_engine.model.streamling.topology import Graph, Node
from kaflow_engine.plugins.installed import SOURCES, loaded

OPERATION = "_gs_op"
Kind = Literal["changes", "rows", "inserts", "table"]
"""Changes that the engine knows; rows with a column `_gs_op`; rows that are all inserts; rows of a
table, which change and go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What comes out of a node."""

    kind: Kind
    key: tuple[str, ...]
    """Columns by which rows replace each other; none: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacts:
    """What a query does, as far as it matters to operations."""

    grouped: bool
    parts: int
    """SELECTs that UNION puts together."""
    joined: bool
    unnested: bool
    sets: bool
    """It says itself what `_gs_op` is."""


@lru_cache(maxsize=256)
def facts_of(sql: SqlText) -> QueryFacts:
    """Return what a query does; each node of a file asks it of the queries around it."""
    tops = [select for select in sql.selects if select.role == "top"]
    return QueryFacts(
        grouped=_is_grouped(sql.text),
        parts=len(tops),
        joined=any(len(select.sources) > 1 for select in sql.selects),
        unnested=any(word.text.lower() == "unnest" for word in sql.words),
        sets=any(computed(sql, select) for select in sql.selects),
    )


def _is_grouped(text: str) -> bool:
    try:
        tree = parse_one(text, dialect="duckdb")
    except SqlglotError:
        return False  # the engine says what is wrong
    if tree.find(exp.Group, exp.Distinct) is not None:
        return True
    calls = tree.find_all(exp.AggFunc)
    return any(call.find_ancestor(exp.Window, exp.Lambda) is None for call in calls)


def computed(sql: SqlText, select: Select) -> bool:
    """Tell whether a SELECT makes `_gs_op` of something else."""
    for item in sql.split(select.items, "COMMA"):
        words = [sql.words[place] for place in item]
        if len(words) > 1 and words[-1].text.lower() == OPERATION and words[-2].kind != "DOT":
            if words[0].text.lower() != OPERATION or len(words) > 3:
                return True
    return False


def traced(sql: SqlText, column: str) -> str | None:
    """Return the column of the input that a column of a query is; None: it is made of others."""
    tops = [select for select in sql.selects if select.role == "top"]
    if len(tops) != 1:
        return None
    star = False
    for item in sql.split(tops[0].items, "COMMA"):
        words = [sql.words[place] for place in item]
        kinds = [word.kind for word in words]
        star |= bool(words) and kinds[-1] == "STAR"
        if not words or words[-1].text.lower() != column.lower():
            continue
        if "ALIAS" in kinds:
            words = words[: kinds.index("ALIAS")]
        plain = all(word.is_name or word.kind == "DOT" for word in words)
        return words[-1].text if plain and words else None
    return column if star else None


def key_behind(sql: SqlText, key: tuple[str, ...]) -> tuple[str, ...]:
    """Return what the key of the input is called in the result; none: it is not in it."""
    tops = [select for select in sql.selects if select.role == "top"]
    names = list(key)
    for item in sql.split(tops[0].items, "COMMA") if len(tops) == 1 else ():
        names.append(sql.words[item.stop - 1].text if item else "")
    found: list[str] = []
    for column in key:
        called = (n for n in names if (of := traced(sql, n)) and of.lower() == column.lower())
        found += [next(called, "")]
    return tuple(found) if all(found) else ()


def rows_of(graph: Graph, *, job: bool = False) -> Mapping[str, Rows]:
    """Return what comes out of each source and transform.

    Args:
        graph: The nodes.
        job: Hybrid sources end with their tables.
    """
    topics: dict[str, set[Kind]] = {}
    keys: dict[str, set[tuple[str, ...]]] = {}
    for node in graph.nodes.values():
        if isinstance(node.spec, KafkaSource):
            topics.setdefault(node.spec.topic, set()).add(_read_as(graph, node))
            keys.setdefault(node.spec.topic, set()).add(key_of_source(graph, node))
    kinds: dict[str, Kind] = {
        topic: "rows" if len(keys[topic]) > 1 else next(kind for kind in _FIRST if kind in asked)
        for topic, asked in topics.items()
    }
    found: dict[str, Rows] = {}
    for name, node in graph.nodes.items():
        first = _of_source(graph, node, kinds, job=job)
        found[name] = _rows(node, found, first, key_of_source(graph, node))
    return found


def _of_source(graph: Graph, node: Node, topics: Mapping[str, Kind], *, job: bool) -> Kind:
    """Return how a source is read; what is none has nothing but inserts of its own."""
    match node.spec:
        case KafkaSource(topic=topic):
            return topics[topic]
        case HybridSource() if (
            node.spec.unbounded_source and not job
        ):  # rows of its tables have no header, and are inserts
            return _read_as(graph, node)
        case PluginNodeSpec() if node.section == "sources" and _says_operation(node.spec):
            return "rows"
        case _:
            return "inserts"


_FIRST: tuple[Kind, ...] = ("rows", "table", "changes")
"""How a topic is read that is read in several ways."""


def key_of_source(graph: Graph, node: Node) -> tuple[str, ...]:
    """Return the key of a source: its own, or that of all that read it, where these have one."""
    if node.spec.primary_key or node.section != "sources":
        return node.spec.primary_key
    keys: set[tuple[str, ...]] = set()
    for reader in graph.readers(node.name):
        own = reader.spec.primary_key
        if reader.sql is not None:
            own = tuple(of for column in own if (of := traced(reader.sql, column)))
        if own:
            keys.add(own)
    return keys.pop() if len(keys) == 1 else ()


def _read_as(graph: Graph, source: Node) -> Kind:
    """Return how a topic is read: as rows with `_gs_op` where someone reads it as a column, as a
    table where its rows are joined, else as changes, of which nothing is kept."""
    key = key_of_source(graph, source)
    if not key or _reads_a_column(graph, source, key):
        return "rows"
    below = [*graph.below(source.name)]
    joined = any(
        node.sql is not None and isinstance(node.spec, SqlTransform) and facts_of(node.sql).joined
        for node in below
    )
    return "table" if joined else "changes"


def _reads_a_column(graph: Graph, source: Node, key: tuple[str, ...]) -> bool:
    keys = {source.name: key}
    for node in graph.nodes.values():
        if isinstance(node.spec, SqlTransform) and node.sql and len(node.reads) == 1:
            if (before := keys.get(node.reads[0])) is None or facts_of(node.sql).grouped:
                continue
            keys[node.name] = key_behind(node.sql, before)
    for node in graph.below(source.name):
        match node.spec:
            case HandlerTransform() | ScriptTransform() | WebhookSink():
                return True
            case PluginReadingSpec() if node.section == "transforms":
                return True
            case _:
                pass
        if node.sql is not None and isinstance(node.spec, SqlTransform):
            facts = facts_of(node.sql)
            if _asks_a_database(graph, node):
                return True
            if facts.sets or (not facts.grouped and (facts.parts > 1 or facts.unnested)):
                return True
            if node.name in keys and not _same(node.spec.primary_key, keys[node.name]):
                return True
        elif isinstance(node.spec, PostgresAggregateSink):
            return True  # its landing table has each row, with what it does
        elif node.section == "sinks" and node.reads[0] in keys:
            if not _same(node.spec.primary_key, keys[node.reads[0]]):
                return True
    return False


def _asks_a_database(graph: Graph, node: Node) -> bool:
    """Tell whether a query asks a dynamic table that is kept elsewhere, which only events can."""
    asked = (graph.nodes[name].spec for name, _ in node.asks if name in graph.nodes)
    return any(isinstance(spec, DynamicTable) and spec.sql is None for spec in asked)


def _same(asked: tuple[str, ...], key: tuple[str, ...]) -> bool:
    """Tell whether rows have the key that is asked for, if one is."""
    if not key:
        return False
    return not asked or {each.lower() for each in asked} == {each.lower() for each in key}


def _rows(node: Node, known: Mapping[str, Rows], first: Kind, key: tuple[str, ...]) -> Rows:
    before = [known[name] for name in node.reads if name in known]
    match node.spec:
        case SqlTransform() if node.sql is not None:
            return Rows(kind=_of_query(facts_of(node.sql), before), key=_key(node, before))
        case DynamicTable():
            return Rows(kind="inserts", key=())
        case _ if before:
            own = node.spec.primary_key or before[0].key
            return Rows(kind=before[0].kind, key=own)
        case _:
            return Rows(kind=first, key=key)


def _says_operation(spec: PluginNodeSpec) -> bool:
    """Tell whether the rows of a source have the column, as its plugin says."""
    try:
        kind = loaded(SOURCES, plugin_id(spec.type))
        columns = kind.columns(kind.options.model_validate(dict(spec.options)))
    except Exception:
        return False  # planning says what is wrong with the plugin, or with its options
    return OPERATION in (columns or {})


def _key(node: Node, before: list[Rows]) -> tuple[str, ...]:
    if node.spec.primary_key or node.sql is None or not before:
        return node.spec.primary_key
    return key_behind(node.sql, before[0].key)


def _of_query(facts: QueryFacts, before: list[Rows]) -> Kind:
    kinds = {rows.kind for rows in before}
    if facts.grouped or "table" in kinds:
        return "table"
    if facts.sets or "rows" in kinds:
        return "rows"
    return "changes" if "changes" in kinds else "inserts"

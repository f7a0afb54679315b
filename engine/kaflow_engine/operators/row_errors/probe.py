"""Finds, with one query, the rows on which SQL would fail: each expression is tried by itself.

The SQL is taken apart by DuckDB's own parser. What is found is a suspicion: `guard` looks whether
it was right, so a shape that is not understood here costs time and never a row.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.functions.catalogue import plain
from kaflow_engine.duck.queries import query, value
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.formats.decoded import shown

_LEAVES = frozenset({"COLUMN_REF", "CONSTANT", "STAR"})
_TOTAL = frozenset({"concat", "to_json", "md5", "to_base64", "struct_pack", "list_value"})
_TOTAL_OPERATORS = frozenset({"OPERATOR_COALESCE", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"})
_SHOWN = 160

Node = dict[str, Any]
_Part = Node | list[Any] | str | float | None


@dataclass(frozen=True, slots=True)
class Suspect:
    """A row on which an expression fails."""

    index: int
    """Its place in the table."""
    fails: str
    """The expression."""
    message: str


@dataclass(frozen=True, slots=True)
class _Probe:
    sql: str
    """SELECT of `i`, the place of a suspect, `e`, its expression, and `v`, what that reads."""
    expressions: tuple[str, ...]


class _NotUnderstood(Exception):
    """The SQL has another shape than nested SELECTs over one table."""


def suspects_of(sql: str, rows: pa.Table) -> list[Suspect]:
    """Return the rows of the table `rows` on which `sql` seems to fail, in their order."""
    probe = _probe(sql)
    if probe is None:
        return []
    numbered = rows.append_column("$i", pa.array(np.arange(rows.num_rows)))
    try:
        found = query(probe.sql, rows=numbered)
    except duckdb.Error:
        return []
    order = pc.sort_indices(found.column("i"))
    found = found.take(order)
    hits: zip[tuple[int, int, str | None]] = zip(
        *(found.column(name).to_pylist() for name in ("i", "e", "v")), strict=True
    )
    suspects: dict[int, Suspect] = {}
    for index, which, read in hits:  # several rows of one where a list is unnested
        expression = probe.expressions[which]
        suspects.setdefault(index, Suspect(index, expression, _message(expression, read)))
    return list(suspects.values())


def _message(expression: str, read: str | None) -> str:
    what = shown(plain(expression).replace('"', ""), _SHOWN)
    return f"cannot compute {what}" + (f" for {shown(read, _SHOWN)}" if read else "")


@lru_cache(maxsize=256)
def _probe(sql: str) -> _Probe | None:
    try:
        tree = json.loads(value("SELECT json_serialize_sql(?::VARCHAR)", [sql]))
        if tree["error"] or len(tree["statements"]) != 1:
            return None
        expressions: list[str] = []
        source, marks = _level(tree["statements"][0]["node"], expressions)
        first = f"coalesce({', '.join(f'{mark}.e' for mark in marks)})"
        reads = f"coalesce({', '.join(f'{mark}.v' for mark in marks)})"
        probed = f'SELECT "$i" AS i, {first} AS e, {reads} AS v FROM ({source})'
        return _Probe(f"SELECT * FROM ({probed}) WHERE e IS NOT NULL", tuple(expressions))
    except (_NotUnderstood, KeyError, duckdb.Error):
        return None


def _level(node: Node, expressions: list[str]) -> tuple[str, list[str]]:
    """Return SQL of a SELECT whose failures become marks, and the names of all marks in it.

    Each expression stands in a SELECT of its own, and once: DuckDB computes what occurs twice
    outside of TRY.
    """
    if node["type"] != "SELECT_NODE" or any(node.get(part) for part in _GROUPING):
        raise _NotUnderstood
    source, marks = _source(node["from_table"], expressions)
    passed = [] if _has_star(node["select_list"]) else ['"$i"', *marks]
    where = node.get("where_clause")
    if where is not None:
        source, tried, mark = _tried(where, source, marks, expressions)
        name = f'"$w{len(expressions)}"'
        source = (
            f'SELECT * FROM (SELECT * EXCLUDE ({tried}), {tried}.v AS "$pass", {mark} AS {name} '
            f'FROM ({source})) WHERE {_any([*marks, name])} OR "$pass"'
        )
        source = f'SELECT * EXCLUDE ("$pass") FROM ({source})'
        marks = [*marks, name]
        passed = [name, *passed] if passed else passed
    chosen: list[str] = []
    own: list[str] = []
    columns: list[str] = []
    aliases: dict[str, list[str]] = {}
    for one in node["select_list"]:
        bare = _renamed({**one, "alias": ""}, aliases)
        name = f" AS {identifier(one['alias'])}" if one["alias"] else ""
        if _is_safe(one):
            chosen.append(_text(bare) + name)
            continue
        if _is_unnest(one):
            chosen.append(_unnested(one, marks) + name)
            continue
        source, tried, mark = _tried(bare, source, marks, expressions)
        columns.append(tried)
        if one["alias"].startswith("$"):  # of our own SQL: used again in the same SELECT
            aliases[one["alias"]] = [tried.strip('"'), "v"]
        chosen.append(f"{tried}.v{name}")
        own.append(mark)
    if own:
        name = f'"$m{len(expressions)}"'
        marks = [*marks, name]
        passed = [*passed, f"coalesce({', '.join(own)}) AS {name}"]
    selected = f"SELECT {', '.join([*chosen, *passed])} FROM ({source})"
    if columns and _has_star(node["select_list"]):
        selected = f"SELECT * EXCLUDE ({', '.join(columns)}) FROM ({selected})"
    return selected, marks


def _is_unnest(node: Node) -> bool:
    named = node["class"] == "FUNCTION" and node["function_name"] == "unnest"
    return named and _is_safe(node["children"][0])


def _unnested(node: Node, marks: Sequence[str]) -> str:
    """Return SQL that gives a suspect one row, as its list is not known."""
    of = _text(node["children"][0])
    return f"unnest(CASE WHEN {_any(marks)} THEN [NULL] ELSE {of} END)" if marks else _text(node)


def _tried(
    node: Node, source: str, marks: Sequence[str], expressions: list[str]
) -> tuple[str, str, str]:
    """Return the source with a column that tries an expression, that column, and SQL of its mark.

    The mark holds the number of the expression and what it reads; it is NULL where it works.
    """
    number, text = len(expressions), _text(node)
    expressions.append(text)
    tried = f'"$t{number}"'
    reads = ", ".join(f"{name} := {name}" for name in dict.fromkeys(_columns(node)))
    read = f"CAST(struct_pack({reads}) AS VARCHAR)" if reads else "NULL::VARCHAR"
    fails = f"{tried} IS NULL"
    if marks:
        fails = f"NOT ({_any(marks)}) AND {fails}"
    mark = f"CASE WHEN {fails} THEN struct_pack(e := {number}, v := {read}) END"
    return f"SELECT *, {_attempt(node, text)} AS {tried} FROM ({source})", tried, mark


def _attempt(node: Node, text: str) -> str:
    """Return SQL of a struct that holds the value, NULL where the expression fails."""
    if node["class"] == "CAST" and _is_safe(node["child"]):
        # TRY looks at rows one after the other where one fails, TRY_CAST does not
        child, cast = _text(node["child"]), _text({**node, "try_cast": True})
        return f"CASE WHEN {child} IS NULL OR {cast} IS NOT NULL THEN struct_pack(v := {cast}) END"
    return f"TRY(struct_pack(v := {text}))"


def _renamed(node: _Part, aliases: dict[str, list[str]]) -> Any:
    if isinstance(node, list):
        return [_renamed(each, aliases) for each in node]
    if not isinstance(node, dict):
        return node
    names = node.get("column_names")
    if node.get("class") == "COLUMN_REF" and names and names[0] in aliases:
        return {**node, "column_names": aliases[names[0]]}
    return {name: _renamed(each, aliases) for name, each in node.items()}


_GROUPING = ("group_expressions", "group_sets", "having", "qualify", "sample", "modifiers")


def _source(table: Node, expressions: list[str]) -> tuple[str, list[str]]:
    if table["type"] == "SUBQUERY":
        return _level(table["subquery"]["node"], expressions)
    if table["type"] == "BASE_TABLE" and table["table_name"] == "rows":
        return 'SELECT * FROM "rows"', []
    raise _NotUnderstood


def _any(marks: Sequence[str]) -> str:
    return " OR ".join(f"{mark} IS NOT NULL" for mark in marks)


def _is_safe(node: Node) -> bool:
    """Tell whether an expression gives a value for whatever it reads; saves trying it."""
    kind = node["class"]
    if kind in _LEAVES:
        return True
    if kind == "CAST":
        text = node["cast_type"]["id"] == "VARCHAR"
        return (text or node["try_cast"]) and _is_safe(node["child"])
    named = kind == "FUNCTION" and node["function_name"] in _TOTAL
    if named or (kind == "OPERATOR" and node["type"] in _TOTAL_OPERATORS):
        return all(_is_safe(child) for child in node["children"])
    return False


def _columns(node: _Part) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _columns(each)
    elif isinstance(node, dict) and node.get("class") != "LAMBDA":  # its variables are no columns
        if node.get("class") == "COLUMN_REF" and len(node["column_names"]) == 1:
            yield identifier(node["column_names"][0])
        for each in node.values():
            yield from _columns(each)


def _has_star(chosen: Sequence[Node]) -> bool:
    return any(one["class"] == "STAR" for one in chosen)


def _text(node: Node) -> str:
    statement = _SELECT % json.dumps(node)
    text: str = value("SELECT json_deserialize_sql(?::JSON)", [statement])
    return text.removeprefix("SELECT ")


_SELECT = (
    '{"error": false, "statements": [{"node": {"type": "SELECT_NODE", "modifiers": [], "cte_map": '
    '{"map": []}, "select_list": [%s], "from_table": {"type": "EMPTY", "alias": "", "sample": null,'
    ' "query_location": 0}, "where_clause": null, "group_expressions": [], "group_sets": [],'
    ' "aggregate_handling": "STANDARD_HANDLING", "having": null, "sample": null,'
    ' "qualify": null}}]}'
)

"""The key of the rows of a query over tables: what tells them apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.model.record_columns import readable
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.pipeline import table_key
from kaflow_engine.sql.scope import Schemas
from kaflow_engine.sql.shape import Expr, JoinKind, JoinShape, OutputShape, QueryShape
from kaflow_engine.sql.tables.joined import as_called

TableKeys = Callable[[str], tuple[str, ...] | None]
"""The columns that are the key of a topic which is read as a table; None of events."""

JoinKey = Literal["join", "left", "right", "pair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """One column of a key."""

    alias: str
    name: str
    sql: str
    uses: frozenset[tuple[str, str]]
    """The (alias, column) pairs that it reads."""
    same: frozenset[str]
    """SQL of what is equal to it in every row."""


Key = tuple[KeyPart, ...]


def table_keys(spec: PipelineSpec, schemas: Schemas) -> TableKeys:
    """Return what tells the key of each topic that is read as a table.

    Args:
        spec: What the author wrote.
        schemas: The columns of topics, or None where they are not known yet.
    """

    def key(topic: str) -> tuple[str, ...] | None:
        names = table_key(spec.topic(topic))
        return None if names is None else as_called(names, schemas(topic))

    return key


def has_columns(shape: QueryShape, keys: TableKeys, schemas: Schemas) -> bool:
    """Tell whether the tables of a query have the columns of their keys, as far as it is known."""
    for source in shape.sources:
        columns = schemas(source.topic)
        known = {column.name for column in readable(columns or ())}
        if columns is not None and not known.issuperset(keys(source.topic) or ()):
            return False
    return True


def source_key(alias: str, names: Sequence[str]) -> Key:
    """Return the key of a table that is read from a topic."""
    return tuple(_part(alias, name) for name in names)


def joined_key(join: JoinShape, left: Key, right: Key) -> tuple[JoinKey, Key]:
    """Return what tells the rows of a join of two tables apart.

    It is the join key where the condition equates the keys of both sides; the key of one side,
    where the condition covers that of the other, so that a row of the one meets one row at most and
    is never missing; else both keys, NULL where a side is missing.

    Args:
        join: The right side, and the condition.
        left: The key of what it is joined to.
        right: Its own key.
    """
    pairs = {pair.outer.sql: pair.inner.sql for pair in join.keys}
    equal = _equated(join, left, right)
    if equal is not None:
        return "join", equal
    inners = frozenset(pairs.values())
    if all(part.same & inners for part in right) and join.kind in ("LEFT", "INNER"):
        return "left", left
    if all(part.same & pairs.keys() for part in left) and join.kind in ("RIGHT", "INNER"):
        return "right", right
    return "pair", (*left, *right)


def _equated(join: JoinShape, left: Key, right: Key) -> Key | None:
    """Return the common key of both sides; None where the condition is not about just that."""
    found: list[KeyPart] = []
    for part in left:
        pair = next((pair for pair in join.keys if pair.outer.sql in part.same), None)
        other = next((each for each in right if pair and pair.inner.sql in each.same), None)
        if other is None:
            return None
        found.append(_merged(join.kind, part, other))
    if not len(found) == len(right) == len(join.keys) == len(left):
        return None
    return tuple(found)


def _merged(kind: JoinKind, left: KeyPart, right: KeyPart) -> KeyPart:
    """Return the value of the side that is there."""
    sql = {
        "INNER": left.sql,
        "LEFT": left.sql,
        "RIGHT": f"COALESCE({left.sql}, {right.sql})",
        "FULL": f"COALESCE({left.sql}, {right.sql})",
    }[kind]
    same = {
        "INNER": left.same | right.same,
        "LEFT": left.same,
        "RIGHT": right.same,
        "FULL": frozenset[str](),
    }[kind]
    return KeyPart(
        alias=left.alias,
        name=left.name,
        sql=sql,
        uses=left.uses if sql == left.sql else left.uses | right.uses,
        same=same | {sql},
    )


def query_key(shape: QueryShape, keys: TableKeys) -> Key:
    """Return the key of the rows of a query over tables, before they are grouped."""
    first, *others = shape.sources
    found = source_key(first.alias, _names(keys, first.topic))
    for source, join in zip(others, shape.joins, strict=True):
        _, found = joined_key(join, found, source_key(source.alias, _names(keys, source.topic)))
    return found


def _names(keys: TableKeys, topic: str) -> tuple[str, ...]:
    found = keys(topic)
    assert found is not None, topic
    return found


def key_output(key: Key, outputs: Sequence[OutputShape]) -> OutputShape:
    """Return the column that is the key of records: of several columns a JSON object.

    Args:
        key: Of the rows.
        outputs: What is selected: a column of the key has there the name by which it is called.
    """
    called = {output.expr.sql: output.name for output in reversed(list(outputs))}
    names = [called.get(identifier(f"{part.alias}.{part.name}"), "") for part in key]
    repeated = {part.name for part in key if sum(each.name == part.name for each in key) > 1}
    shown = [
        name or (f"{part.alias}.{part.name}" if part.name in repeated else part.name)
        for name, part in zip(names, key, strict=True)
    ]
    pairs = ", ".join(f"{literal(n)}, {part.sql}" for n, part in zip(shown, key, strict=True))
    sql = f"CAST(json_object({pairs}) AS VARCHAR)"
    if len(key) == 1:
        value = key[0].sql
        sql = f"CASE WHEN {value} IS NULL THEN {sql} ELSE CAST({value} AS VARCHAR) END"
    uses = tuple(sorted({use for part in key for use in part.uses}))
    return OutputShape(name="_key", expr=Expr(sql=sql, uses=uses), is_key=True)


def is_key(key: Key, expr: Expr) -> bool:
    """Tell whether a column has another value in each row."""
    return len(key) == 1 and expr.sql in key[0].same


def _part(alias: str, name: str) -> KeyPart:
    sql = identifier(f"{alias}.{name}")
    uses = frozenset({(alias, name)})
    return KeyPart(alias=alias, name=name, sql=sql, uses=uses, same=frozenset({sql}))

"""The key of the rows of a query over tables: what tells them apart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.operators import PLACE
from kaflow_engine.flow.windows import WINDOW_START
from kaflow_engine.model.key_formats import KeyFormat
from kaflow_engine.model.record_columns import readable
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.tables.record_keys import own_key_name
from kaflow_engine.plan.planner.tables.written_keys import record_key
from kaflow_engine.sql.pipeline import table_key
from kaflow_engine.sql.scope import Schemas
from kaflow_engine.sql.shape import (
    Expr,
    JoinKind,
    JoinShape,
    OutputShape,
    QueryShape,
    SourceShape,
)
from kaflow_engine.sql.tables.joined import as_called

TableKeys = Callable[[SourceShape], tuple[str, ...] | None]
"""The columns that are the key of a source which is a table; None of events."""

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
    shown: tuple[str, str]
    """What people call its source, and itself."""
    may_be_null: bool = False
    """Of groups: NULL is a grouping value like others, unless they say IS NOT NULL."""
    is_window: bool = False
    """The start of a window, which comes last in the key of records, in epoch milliseconds."""


Key = tuple[KeyPart, ...]

_ALIKE = (
    "the group of NULL of one side and that of the other, which meet nothing, would have one key"
)


def table_keys(spec: PipelineSpec, schemas: Schemas) -> TableKeys:
    """Return what tells the key of each source that is a table.

    Args:
        spec: What the author wrote.
        schemas: The columns of topics, or None where they are not known yet.
    """

    def key(source: SourceShape) -> tuple[str, ...] | None:
        said = spec.read_as(source.topic, source.reading)
        names = source.key or table_key(said, kept=source.changes)
        return None if names is None else as_called(names, schemas(source.topic))

    return key


def has_columns(shape: QueryShape, keys: TableKeys, schemas: Schemas) -> bool:
    """Tell whether the tables of a query have the columns of their keys, as far as it is known."""
    for source in shape.sources:
        if source.query is not None:
            continue
        columns = schemas(source.topic)
        known = {column.name for column in readable(columns or ())}
        if columns is not None and not known.issuperset(keys(source) or ()):
            return False
    return True


def source_key(source: SourceShape, keys: TableKeys) -> Key:
    """Return the key of a table: of a topic, or the tuple of grouping values of groups."""
    alias = source.alias
    if source.query is not None and not source.query.groups:
        return source_key(source.query.driving, keys)
    if source.query is not None:
        group = source.query.groups[-1]
        called = {name: said for said, name in group.named}
        shown = source.called or alias
        parts = (_part(alias, n, (shown, called.get(n, n))) for n, _ in group.keys)
        branches = (source.query, *group.beside)
        found = tuple(
            replace(part, may_be_null=any(_may_be_null(source, q, part) for q in branches))
            for part in parts
        )
        if group.window is None:
            return found
        return (*found, replace(_part(alias, WINDOW_START, (shown, WINDOW_START)), is_window=True))
    names = keys(source)
    assert names is not None, source.topic
    return tuple(_part(alias, name, (alias, name)) for name in names)


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
        return "join", tuple(_merged(join.kind, *pair) for pair in equal)
    inners = frozenset(pairs.values())
    if all(part.same & inners for part in right) and join.kind in ("LEFT", "INNER"):
        return "left", left
    if all(part.same & pairs.keys() for part in left) and join.kind in ("RIGHT", "INNER"):
        return "right", right
    return "pair", (*left, *right)


def refuse_alike(
    join: JoinShape, which: JoinKey, left: Key, right: Key, at: Location | None
) -> None:
    """Refuse a FULL JOIN of groups in which rows that miss one side or the other may have one key.

    Args:
        join: The right side, and the condition.
        which: What tells its rows apart.
        left: The key of what it is joined to.
        right: Its own key.
        at: Where it stands.

    Raises:
        SqlError: With the way out.
    """
    if join.kind != "FULL":
        return
    equal = _equated(join, left, right) if which == "join" else None
    if equal is not None:
        unsure = [one.shown for one, other in equal if one.may_be_null and other.may_be_null]
        if unsure:
            whose, column = unsure[0]
            raise SqlError(
                f"FULL JOIN of groups by '{column}', which may be NULL on both sides: {_ALIKE}",
                at,
                f"say WHERE {column} IS NOT NULL in the query of '{whose}'; or use LEFT JOIN",
            )
    elif all(part.may_be_null for part in (*left, *right)):
        raise SqlError(
            "FULL JOIN of groups by other columns than all those that they are grouped by: "
            + _ALIKE,
            at,
            "group both by the columns of the condition; or use LEFT JOIN",
        )


def _may_be_null(source: SourceShape, query: QueryShape, part: KeyPart) -> bool:
    """Tell whether a grouping value may be NULL in the rows of a query, one branch of a union."""
    expr = dict(query.groups[-1].keys)[part.name]
    return _asked(source, query).isdisjoint(map(_there, (expr.sql, part.sql)))


def _asked(source: SourceShape, query: QueryShape) -> frozenset[str]:
    """Return what all rows of groups pass: before they are grouped, and behind."""
    before = (*query.where, *(expr for each in query.sources for expr in each.filter))
    behind = (*source.filter, *(expr for group in query.groups for expr in group.where))
    return frozenset(expr.sql for expr in (*before, *behind))


def _there(sql: str) -> str:
    return f"NOT {sql} IS NULL"


def _equated(join: JoinShape, left: Key, right: Key) -> list[tuple[KeyPart, KeyPart]] | None:
    """Return what of both keys is equal; None where the condition is not about just that."""
    found: list[tuple[KeyPart, KeyPart]] = []
    for part in left:
        pair = next((pair for pair in join.keys if pair.outer.sql in part.same), None)
        other = next((each for each in right if pair and pair.inner.sql in each.same), None)
        if other is None:
            return None
        found.append((part, other))
    return found if len(found) == len(right) == len(join.keys) == len(left) else None


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
        shown=left.shown,
        may_be_null={
            "INNER": False,
            "LEFT": left.may_be_null,
            "RIGHT": right.may_be_null,
            "FULL": left.may_be_null or right.may_be_null,
        }[kind],
        is_window=left.is_window and right.is_window,
    )


def query_key(shape: QueryShape, keys: TableKeys) -> Key:
    """Return the key of the rows of a query over tables, before they are grouped; of elements of a
    list their place is a part of it."""
    found = source_key(shape.sources[0], keys)
    for source, join in zip(shape.sources[1:], shape.joins, strict=True):
        _, found = joined_key(join, found, source_key(source, keys))
    return (*found, *(_part(each.alias, PLACE, (each.alias, PLACE)) for each in shape.unnests))


def key_output(
    key: Key,
    outputs: Sequence[OutputShape],
    discriminator: OutputShape | None,
    form: KeyFormat | None,
) -> OutputShape:
    """Return the column that is the key of records.

    Args:
        key: Of the rows.
        outputs: What is selected: a column of the key has there the name by which it is called.
        discriminator: As in `record_key`.
        form: As in `record_key`.
    """
    called = {output.expr.sql: output.name for output in reversed(list(outputs))}
    names = [called.get(identifier(f"{part.alias}.{part.name}"), "") for part in key]
    own = [part.shown[1] for part in key]
    shown = [
        name or (".".join(part.shown) if own.count(part.shown[1]) > 1 else part.shown[1])
        for name, part in zip(names, key, strict=True)
    ]
    named = list(zip(shown, key, strict=True))
    pairs = [(name, part.sql) for name, part in named if not part.is_window]
    starts = [(name, part.sql) for name, part in named if part.is_window]
    pairs += [(WINDOW_START if len(starts) == 1 else n, f"epoch_ms({sql})") for n, sql in starts]
    sql = record_key(pairs, discriminator, form, is_object=bool(starts))
    expr = Expr(sql=sql, uses=tuple(sorted({use for part in key for use in part.uses})))
    return OutputShape(name=own_key_name(outputs), expr=expr, role="key")


def is_key(key: Key, parts: Sequence[Expr], discriminator: OutputShape | None) -> bool:
    """Tell whether a column, or several, have other values in each row."""
    apart = [] if discriminator is None else [frozenset({discriminator.expr.sql})]
    own = [part.same for part in key] + apart
    found = frozenset(part.sql for part in parts)
    return all(same & found for same in own) and found <= frozenset[str]().union(*own)


def _part(alias: str, name: str, shown: tuple[str, str]) -> KeyPart:
    sql, uses = identifier(f"{alias}.{name}"), frozenset({(alias, name)})
    return KeyPart(alias=alias, name=name, sql=sql, uses=uses, same=frozenset({sql}), shown=shown)

"""The key of a table, as the Kafka key of a record gives it, and as that of an output is called."""

from collections.abc import Sequence

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.duck.wide.taught import cast
from kaflow_engine.formats.types import Decimal, Scalar, fields_of, parse_type
from kaflow_engine.model.columns import Column
from kaflow_engine.model.record_columns import HIDDEN_KEY, KEY, NULL_VALUE
from kaflow_engine.model.sources.topic_specs import TopicSpec
from kaflow_engine.sql.pipeline import key_type
from kaflow_engine.sql.shape import Expr, JoinShape, OutputShape


def from_record_key(alias: str, key: Sequence[Column], kind: str) -> tuple[str, ...] | None:
    """Return SQL of the columns of a key over `_key`; None where that does not say them.

    It says one column itself, and as many as there are by the names of its fields.

    Args:
        alias: Of the topic in the query.
        key: The columns.
        kind: The type of `_key`.
    """
    own = identifier(f"{alias}.{KEY}")
    if [column.name for column in key] == [KEY]:
        return (own,)
    fields = {field.name.lower(): field.name for field in fields_of(kind)}
    if fields:
        if not fields.keys() >= {column.name.lower() for column in key}:
            return None
        return tuple(cast(f"({own}).{identifier(fields[c.name.lower()])}", c.type) for c in key)
    return (cast(own, key[0].type),) if len(key) == 1 else None


KeysOfChanges = dict[str, tuple[str, Expr]]
"""By the SQL of a key column: its name, and what it is in every change."""


def keys_of_changes(alias: str, key: Sequence[Column], kind: str) -> KeysOfChanges:
    """Return what the columns of the key are in every change, also in one without a value.

    Args:
        alias: As in `from_record_key`.
        key: As there.
        kind: As there.
    """
    of_nulls = from_record_key(alias, key, kind) or [None] * len(key)
    null = identifier(f"{alias}.{NULL_VALUE.name}")
    found: KeysOfChanges = {}
    for column, of_null in zip(key, of_nulls, strict=True):
        own = identifier(f"{alias}.{column.name}")
        uses, sql = {(alias, column.name)}, own
        if of_null is not None:
            sql = f"CASE WHEN {null} THEN {of_null} ELSE {own} END"
            uses |= {(alias, NULL_VALUE.name), (alias, KEY)}
        found[own] = (column.name, Expr(sql=sql, uses=tuple(sorted(uses))))
    return found


def is_record_key(join: JoinShape, topic: TopicSpec) -> bool:
    """Tell whether the Kafka keys of a dimension are the texts by which it is joined."""
    own = [pair.inner.sql.lower() for pair in join.keys]
    kind = key_type(topic)
    if len(own) != 1 or kind == "BLOB" or not isinstance(parse_type(kind), Scalar | Decimal):
        return False
    # an expression over that column is another key
    return topic.key is None or own == [identifier(f"{join.alias}.{topic.key}").lower()]


def own_key_name(outputs: Sequence[OutputShape]) -> str:
    """Return what the key of records is called that is no part of their value: not as a column."""
    return HIDDEN_KEY if any(output.name.lower() == KEY for output in outputs) else KEY

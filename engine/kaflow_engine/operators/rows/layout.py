"""SQL that gives rows their columns back, named `alias.column`."""

from collections.abc import Sequence

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.operators import KeyedJoin
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.row_text import columns_of, pack, to_text, unpack
from kaflow_engine.sql.shape import BATCH_TIME, MATCHED

GONE = "$gone."
"""How the place of a column is called that a row once had: it stays, and holds NULL."""


def is_gone(column: Column) -> bool:
    """Tell whether a column is only the place of one that was removed."""
    return column.name.startswith(GONE)


def packed(alias: str, columns: Sequence[Column]) -> str:
    """Return SQL for columns named `alias.column` as one packed row."""
    return pack(
        "NULL" if is_gone(c) else to_text(identifier(f"{alias}.{c.name}"), c.type) for c in columns
    )


def packed_row(columns: Sequence[Column]) -> str:
    """Return SQL for columns, by their names, as one packed row."""
    return pack("NULL" if is_gone(c) else to_text(identifier(c.name), c.type) for c in columns)


def batch_time_column(batch_time: int) -> str:
    """Return the batch time as the column `$batch_time`."""
    return f"make_timestamptz({batch_time} * 1000) AS {identifier(BATCH_TIME)}"


def join_rows(join: KeyedJoin, batch_time: int) -> str:
    """Return a SELECT of `rn` and all columns of a join from `rows(rn, d, s0, s1, …)`."""
    lists = [f"{unpack('d')} AS l", *(f"{unpack(f's{i}')} AS l{i}" for i in _sides(join))]
    values = columns_of("l", join.before)
    for i, side in enumerate(join.sides):
        values += columns_of(f"l{i}", side.columns, f"{side.alias}.")
        values.append(f"l{i} IS NOT NULL AS {identifier(f'{side.alias}.{MATCHED}')}")
    chosen = ", ".join(["rn", batch_time_column(batch_time), *values])
    return f"SELECT {chosen} FROM (SELECT rn, {', '.join(lists)} FROM rows)"


def carried(join: KeyedJoin, columns: Sequence[Column]) -> list[str]:
    """Return SQL texts of columns that leave over the lists `l`, `l0`, … of `rows`."""
    places = {column.name: f"l[{i}]" for i, column in enumerate(join.before, 1)}
    for i, side in enumerate(join.sides):
        for k, column in enumerate(side.columns, 1):
            places[f"{side.alias}.{column.name}"] = f"l{i}[{k}]"
        places[f"{side.alias}.{MATCHED}"] = to_text(f"(l{i} IS NOT NULL)", "BOOLEAN")
    return ["NULL" if is_gone(column) else places[column.name] for column in columns]


def carried_rows(join: KeyedJoin) -> str:
    """Return the subquery that `carried` reads."""
    lists = [f"{unpack('d')} AS l", *(f"{unpack(f's{i}')} AS l{i}" for i in _sides(join))]
    return f"(SELECT rn, {', '.join(lists)} FROM rows)"


def keyed(key: str) -> str:
    """Return SQL for the shard byte and the bytes of a key text; NULL stays NULL."""
    return f"unhex(left(md5({key}), 2)) || encode({key})"


def placed_by(place: str, key: str) -> str:
    """Return SQL for a shard byte and the bytes of a key text.

    Args:
        place: The text that has the shard; where it is NULL, it is the first one.
        key: The text of the key.
    """
    return f"coalesce(unhex(left(md5({place}), 2)), '\\x00'::BLOB) || encode({key})"


def identity(keys: Sequence[tuple[Column, str]]) -> str:
    """Return SQL for the text of a row's key in a table: equal keys have the same one.

    Args:
        keys: The columns of the key, and their SQL.
    """
    return pack(canonical(sql, column.type) for column, sql in keys)


def key_text(parts: Sequence[tuple[str, str]]) -> str:
    """Return SQL for the text of a join key.

    Args:
        parts: Expressions and the types to which both sides of the join are cast.
    """
    texts = [canonical(sql, kind) for sql, kind in parts]
    if len(texts) == 1:
        return texts[0]
    missing = " OR ".join(f"({text}) IS NULL" for text in texts)
    return f"CASE WHEN {missing} THEN NULL ELSE CAST(to_json([{', '.join(texts)}]) AS VARCHAR) END"


def canonical(sql: str, kind: str) -> str:
    """Return SQL for the text of a value of a type; equal values have the same one."""
    cast = f"CAST({sql} AS {kind})"
    if kind in ("DOUBLE", "FLOAT"):
        cast = f"(CASE WHEN {cast} = 0 THEN 0::{kind} ELSE {cast} END)"  # -0.0 equals 0.0
    return to_text(cast, kind)


def _sides(join: KeyedJoin) -> range:
    return range(len(join.sides))


def selected(column: Column) -> str:
    """Return how a projection names one of its columns, quoted."""
    return identifier(f"o.{column.name}")

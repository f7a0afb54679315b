"""Types of DuckDB in ClickHouse: what a column is created as, and which columns hold it."""

from collections.abc import Sequence
from typing import assert_never

from kaflow_engine.connectors.clickhouse.names import name, own_columns
from kaflow_engine.connectors.contract import Settings, Unfit
from kaflow_engine.formats.types import Decimal, List, Map, Scalar, Struct, Type
from kaflow_engine.formats.types import parse_type as read
from kaflow_engine.model.columns import Column

_SIGNED = ("Int8", "Int16", "Int32", "Int64", "Int128", "Int256")
_UNSIGNED = ("UInt8", "UInt16", "UInt32", "UInt64", "UInt128", "UInt256")
_MICROS = ("DateTime64(6)", "DateTime64(7)", "DateTime64(8)")
_SCALARS: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("Bool",),
    "TINYINT": _SIGNED,
    "SMALLINT": _SIGNED[1:],
    "INTEGER": _SIGNED[2:],
    "BIGINT": _SIGNED[3:],
    "HUGEINT": _SIGNED[4:],
    "UTINYINT": (*_UNSIGNED, *_SIGNED[1:]),
    "USMALLINT": (*_UNSIGNED[1:], *_SIGNED[2:]),
    "UINTEGER": (*_UNSIGNED[2:], *_SIGNED[3:]),
    "UBIGINT": (*_UNSIGNED[3:], *_SIGNED[4:]),
    "FLOAT": ("Float32", "Float64"),
    "DOUBLE": ("Float64",),
    "VARCHAR": ("String",),
    "BLOB": ("String",),
    "DATE": ("Date32",),
    "TIMESTAMP": _MICROS,
    "TIMESTAMP_S": _MICROS,
    "TIMESTAMP_MS": _MICROS,
    "TIMESTAMP_NS": ("DateTime64(9)",),
    "TIMESTAMP WITH TIME ZONE": _MICROS,
    "UUID": ("UUID",),
    "JSON": ("String",),
}
"""Type → the column that is created, then others that hold every value of it; without time zones,
which say how times are shown."""


def unfit(columns: Sequence[Column], settings: Settings) -> list[Unfit]:
    """Return what no table can keep as it is."""
    found: list[Unfit] = []
    for column in columns:
        if column.name in own_columns(settings):
            why = f"tables of ClickHouse have a column '{column.name}' of their own"
            found.append(Unfit(why=why, hint="select it under another name"))
        elif not _is_kept(read(column.type)):
            why = f"ClickHouse has no type for column '{column.name}': it is {column.type}"
            cast = f"CAST({column.name} AS VARCHAR) AS {column.name}"
            found.append(Unfit(why=why, hint=f"write {cast}"))
    return found


def _is_kept(kind: Type) -> bool:
    match kind:
        case Scalar(name=known):
            return _scalar(known) in _SCALARS
        case Decimal():
            return True
        case List(element=element):
            return _is_kept(element)
        case Struct(fields=fields):
            return all(_is_kept(field) for _, field in fields)
        case Map(key=key, value=value):
            return isinstance(key, Scalar | Decimal) and _is_kept(key) and _is_kept(value)
        case _:
            assert_never(kind)


def _scalar(known: str) -> str:
    return "VARCHAR" if known.startswith("ENUM(") else known


def created_as(kind: str, nullable: bool = True) -> str:
    """Return the type of a column for values of a DuckDB type.

    >>> created_as("INTEGER"), created_as("DECIMAL(9,2)"), created_as("VARCHAR", nullable=False)
    ('Nullable(Int32)', 'Nullable(Decimal(9, 2))', 'String')
    >>> created_as("TIMESTAMP"), created_as("MAP(VARCHAR, INTEGER[])")
    ("Nullable(DateTime64(6, 'UTC'))", 'Map(String, Array(Nullable(Int32)))')
    """
    return _created_as(read(kind), nullable)


def _created_as(kind: Type, nullable: bool = True) -> str:
    match kind:
        case List(element=element):
            return f"Array({_created_as(element)})"
        case Struct(fields=fields):
            inside = ", ".join(f"{name(each)} {_created_as(field)}" for each, field in fields)
            return f"Tuple({inside})"
        case Map(key=key, value=value):
            return f"Map({_created_as(key, nullable=False)}, {_created_as(value)})"
        case Decimal(precision=precision, scale=scale):
            plain = f"Decimal({precision}, {scale})"
        case Scalar(name=known):
            plain = _SCALARS[_scalar(known)][0]
            if plain.startswith("DateTime64"):
                plain = f"{plain[:-1]}, 'UTC')"
        case _:
            assert_never(kind)
    return f"Nullable({plain})" if nullable else plain


def holds(column: str, kind: str) -> bool:
    """Tell whether a column of a ClickHouse type holds every value of a DuckDB type, or its NULL.

    A column that takes no NULL holds the others: a row with one is refused as it comes.

    >>> holds("Int64", "INTEGER"), holds("Nullable(Int16)", "INTEGER"), holds("String", "BLOB")
    (True, False, True)
    >>> holds("DateTime64(6, 'Europe/Berlin')", "TIMESTAMP"), holds("DateTime", "TIMESTAMP")
    (True, False)
    >>> holds("Array(LowCardinality(String))", "VARCHAR[]"), holds("Array(String)", "VARCHAR")
    (True, False)
    """
    return _holds(column, read(kind))


def _holds(column: str, kind: Type) -> bool:
    column, parts = parts_of(column)
    match kind:
        case Scalar(name=known):
            if column == "DateTime64":
                column = f"DateTime64({parts[0]})"
            return column in _SCALARS.get(_scalar(known), ())
        case Decimal(precision=precision, scale=scale):
            if column != "Decimal":
                return False
            own, digits = int(parts[0]), int(parts[1])
            return digits >= scale and own - digits >= precision - scale
        case List(element=element):
            return column == "Array" and _holds(parts[0], element)
        case Map(key=key, value=value):
            return column == "Map" and _holds(parts[0], key) and _holds(parts[1], value)
        case Struct(fields=fields):
            named = [field_of(part) for part in parts]
            return (
                column == "Tuple"
                and {each for each, _ in named} == {each for each, _ in fields}
                and all(_holds(dict(named)[each], field) for each, field in fields)
            )
        case _:
            assert_never(kind)


def parts_of(column: str) -> tuple[str, list[str]]:
    """Return the name of a type and what is in its brackets, without what only wraps another.

    >>> parts_of("LowCardinality(Nullable(String))"), parts_of("Map(String, Array(Int8))")
    (('String', []), ('Map', ['String', 'Array(Int8)']))
    """
    head, bracket, rest = column.partition("(")
    if not bracket:
        return column, []
    inside = rest.removesuffix(")")
    if head in ("Nullable", "LowCardinality"):
        return parts_of(inside)
    found, depth, quote, begin = list[str](), 0, "", 0
    for place, letter in enumerate(inside):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'`":
            quote = letter
        elif letter == "," and not depth:
            found.append(inside[begin:place].strip())
            begin = place + 1
        else:
            depth += (letter == "(") - (letter == ")")
    return head, [*found, inside[begin:].strip()]


def field_of(part: str) -> tuple[str, str]:
    """Return the name and the type of a field; of one without a name, only its type.

    >>> field_of("`a b` Int8"), field_of("c Array(Int8)"), field_of("Int8")
    (('a b', 'Int8'), ('c', 'Array(Int8)'), ('', 'Int8'))
    """
    if part.startswith("`"):
        named, _, kind = part[1:].partition("` ")
        return named, kind
    named, space, kind = part.partition(" ")
    return (named, kind) if space and "(" not in named else ("", part)

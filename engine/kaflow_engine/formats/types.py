"""DuckDB types as data, read from and written as the text that DuckDB uses for them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

import duckdb
import duckdb.sqltypes

from kaflow_engine.duck import queries, quoting
from kaflow_engine.duck.wide.integers import is_wide
from kaflow_engine.errors import ModelError
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa  # planning needs types as text, and it takes long to load


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts; `name` as DuckDB writes it, such as `BIGINT`."""

    name: str


@dataclass(frozen=True, slots=True)
class Decimal:
    """DECIMAL(precision, scale)."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class List:
    """A list of any length."""

    element: "Type"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields, in order."""

    fields: tuple[tuple[str, "Type"], ...]


@dataclass(frozen=True, slots=True)
class Map:
    """A map from keys to values."""

    key: "Type"
    value: "Type"


Type = Scalar | Decimal | List | Struct | Map

INTEGERS: dict[str, tuple[int, int]] = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "HUGEINT": (-(10**38) + 1, 10**38 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "UHUGEINT": (0, 10**38 - 1),
}
"""Integer types and the values they may hold; Arrow carries HUGEINT as 38 decimal digits."""


@lru_cache(maxsize=1024)
def parse_type(text: str) -> Type:
    """Read a DuckDB type, `U256` or `I256`; raise ModelError when DuckDB does not know it."""
    if is_wide(text):
        return Scalar(text)
    try:
        with queries.cursor(text) as connection:
            return _from_duckdb(connection.type(text))
    except duckdb.Error as error:
        raise ModelError(
            f"unknown column type '{text}'", hint="use a DuckDB type such as VARCHAR or BIGINT"
        ) from error


@lru_cache(maxsize=1024)
def arrow_type(text: str) -> "pa.DataType":
    """Return the Arrow type in which DuckDB exports a column of type `text`."""
    parse_type(text)
    return queries.query(f"SELECT CAST(NULL AS {text}) AS c").schema.field(0).type


def fields_of(text: str) -> tuple[Column, ...]:
    """Return the fields of a STRUCT as columns; of another type none."""
    kind = parse_type(text)
    found = kind.fields if isinstance(kind, Struct) else ()
    return tuple(Column(name, type_text(each)) for name, each in found)


def type_text(kind: Type) -> str:
    """Write a type as DuckDB reads it."""
    match kind:
        case Scalar(name=name):
            return name
        case Decimal(precision=precision, scale=scale):
            return f"DECIMAL({precision},{scale})"
        case List(element=element):
            return f"{type_text(element)}[]"
        case Struct(fields=fields):
            inner = ", ".join(f"{quoting.identifier(name)} {type_text(f)}" for name, f in fields)
            return f"STRUCT({inner})"
        case Map(key=key, value=value):
            return f"MAP({type_text(key)}, {type_text(value)})"
        case _:
            assert_never(kind)


def without_uuid(kind: Type) -> Type:
    """Return the type with VARCHAR for UUID, which Arrow carries as text."""
    return _texts(kind, lambda name: name == "UUID")


def without_wide(kind: Type) -> Type:
    """Return the type with VARCHAR for wide integers, of which Arrow makes no nested values."""
    return _texts(kind, is_wide)


def _texts(kind: Type, is_text: Callable[[str], bool]) -> Type:
    match kind:
        case Scalar(name=name):
            return Scalar("VARCHAR") if is_text(name) else kind
        case List(element=element):
            return List(_texts(element, is_text))
        case Struct(fields=fields):
            return Struct(tuple((name, _texts(field, is_text)) for name, field in fields))
        case Map(key=key, value=value):
            return Map(_texts(key, is_text), _texts(value, is_text))
        case Decimal():
            return kind
        case _:
            assert_never(kind)


def _from_duckdb(found: duckdb.sqltypes.DuckDBPyType) -> Type:
    match found.id:
        case "decimal":
            parts = dict(found.children)
            return Decimal(_number(parts["precision"]), _number(parts["scale"]))
        case "list":
            return List(_child(found, 0))
        case "struct":
            return Struct(tuple(_named(found)))
        case "map":
            return Map(_child(found, 0), _child(found, 1))
        case _:
            return Scalar(str(found))


def _child(parent: duckdb.sqltypes.DuckDBPyType, index: int) -> Type:
    return tuple(_named(parent))[index][1]


def _named(parent: duckdb.sqltypes.DuckDBPyType) -> Iterator[tuple[str, Type]]:
    for name, child in parent.children:
        if isinstance(child, duckdb.sqltypes.DuckDBPyType):
            yield name, _from_duckdb(child)


def _number(child: object) -> int:
    if not isinstance(child, int):
        raise TypeError(f"expected a number of digits, not {child!r}")
    return child

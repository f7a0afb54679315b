"""Types of DuckDB in Iceberg: as what values are written, and which columns hold them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from kaflow_engine.connectors.contract import Unfit
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.formats.types import Decimal, List, Map, Scalar, Struct, Type
from kaflow_engine.formats.types import parse_type as read
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from pyiceberg.types import IcebergType

_WRITTEN = {
    "TINYINT": "INTEGER",
    "SMALLINT": "INTEGER",
    "UTINYINT": "INTEGER",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "JSON": "VARCHAR",
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
}
"""Type → the one with which its values are written, if that is another one."""
_HELD = {
    "BOOLEAN": ("boolean",),
    "INTEGER": ("int", "long"),
    "BIGINT": ("long",),
    "FLOAT": ("float", "double"),
    "DOUBLE": ("double",),
    "VARCHAR": ("string",),
    "BLOB": ("binary",),
    "DATE": ("date",),
    "TIME": ("time",),
    "TIMESTAMP": ("timestamp",),
    "TIMESTAMP WITH TIME ZONE": ("timestamptz",),
    "UUID": ("uuid",),
}
"""Type that is written → names of columns that hold every value of it."""


def unfit(columns: Sequence[Column]) -> list[Unfit]:
    """Return what no table can keep as it is."""
    found: list[Unfit] = []
    for column in columns:
        name, kind = column.name, column.type
        if _written_as(read(kind)) is None:
            why = f"Iceberg has no type for column '{name}': it is {kind}"
            to = {"HUGEINT": "DECIMAL(38, 0)", "TIMESTAMP_NS": "TIMESTAMP"}.get(kind, "VARCHAR")
            found.append(Unfit(why=why, hint=f"write CAST({name} AS {to}) AS {name}"))
    return found


def written_as(kind: str) -> str:
    """Return the DuckDB type with which values of a type are written.

    >>> written_as("UTINYINT"), written_as("UBIGINT[]"), written_as("ENUM('a')")
    ('INTEGER', 'DECIMAL(20,0)[]', 'VARCHAR')
    """
    return _written_as(read(kind)) or kind


def _written_as(kind: Type, inside: bool = False) -> str | None:
    match kind:
        case Scalar(name=name):
            written = "VARCHAR" if name.startswith("ENUM(") else _WRITTEN.get(name, name)
            is_kept = (written in _HELD or name in _WRITTEN) and not (inside and name == "UUID")
            return written if is_kept else None
        case Decimal(precision=precision, scale=scale):
            return f"DECIMAL({precision},{scale})"
        case List(element=element):
            of = _written_as(element, inside=True)
            return f"{of}[]" if of else None
        case Map(key=key, value=value):
            parts = [_written_as(part, inside=True) for part in (key, value)]
            return f"MAP({parts[0]}, {parts[1]})" if all(parts) else None
        case Struct(fields=fields):
            found = [(name, _written_as(field, inside=True)) for name, field in fields]
            listed = ", ".join(f"{identifier(name)} {of}" for name, of in found)
            return f"STRUCT({listed})" if all(of for _, of in found) else None
        case _:
            assert_never(kind)


def is_key(kind: str) -> bool:
    """Tell whether rows are found by values of a type.

    >>> is_key("DECIMAL(9,2)"), is_key("UUID"), is_key("DOUBLE"), is_key("INTEGER[]")
    (True, False, False, False)
    """
    written = read(written_as(kind))
    return isinstance(written, Decimal) or (
        isinstance(written, Scalar) and written.name not in ("UUID", "FLOAT", "DOUBLE", "BLOB")
    )


def holds(column: "IcebergType", kind: str) -> bool:
    """Tell whether a column holds every value of a DuckDB type as it is."""
    return _holds(column, read(written_as(kind)))


def _holds(column: "IcebergType", written: Type) -> bool:
    from pyiceberg.types import DecimalType, ListType, MapType, StructType

    match written:
        case Scalar(name=name):
            return str(column) in _HELD[name]
        case Decimal(precision=precision, scale=scale):
            is_decimal = isinstance(column, DecimalType)
            return is_decimal and column.scale == scale and column.precision >= precision
        case List(element=element):
            return isinstance(column, ListType) and _holds(column.element_type, element)
        case Map(key=key, value=value):
            is_map = isinstance(column, MapType)
            return is_map and _holds(column.key_type, key) and _holds(column.value_type, value)
        case Struct(fields=fields):
            if not isinstance(column, StructType):
                return False
            there = {field.name: field.field_type for field in column.fields}
            return there.keys() == {name for name, _ in fields} and all(
                _holds(there[name], field) for name, field in fields
            )
        case _:
            assert_never(written)

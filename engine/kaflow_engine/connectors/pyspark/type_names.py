"""Which types PySpark has; without PySpark, for planning asks."""

from collections.abc import Mapping

from kaflow_engine.formats.types import Decimal, List, Map, Scalar, Struct, Type

SCALARS: Mapping[str, str] = {
    "VARCHAR": "StringType",
    "BOOLEAN": "BooleanType",
    "TINYINT": "ByteType",
    "SMALLINT": "ShortType",
    "INTEGER": "IntegerType",
    "BIGINT": "LongType",
    "FLOAT": "FloatType",
    "DOUBLE": "DoubleType",
    "DATE": "DateType",
    "TIMESTAMP": "TimestampNTZType",
    "TIMESTAMP WITH TIME ZONE": "TimestampType",
    "BLOB": "BinaryType",
}
"""DuckDB's name of a type to PySpark's class."""


def unfit(kind: Type) -> str | None:
    """Return the name of a type, or of one inside it, that PySpark does not have.

    >>> unfit(List(Scalar("UBIGINT"))), unfit(Decimal(9, 2))
    ('UBIGINT', None)
    """
    match kind:
        case Scalar(name=name):
            return None if name in SCALARS else name
        case Decimal():
            return None
        case List(element=element):
            return unfit(element)
        case Map(key=key, value=value):
            return unfit(key) or unfit(value)
        case Struct(fields=fields):
            return next((found for _, own in fields if (found := unfit(own))), None)

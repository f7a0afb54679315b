"""Columns as PySpark's data sources have them, and as pipelines do."""

from collections.abc import Mapping, Sequence

from pyspark.sql import types as spark

from kaflow_engine.connectors.pyspark.ddl import columns_of_ddl
from kaflow_engine.connectors.pyspark.type_names import SCALARS
from kaflow_engine.errors import ModelError, SourceUnfit, SqlError
from kaflow_engine.formats.types import Decimal, List, Map, Scalar, Struct, Type, parse_type
from kaflow_engine.model.columns import Column

_SCALARS: Mapping[str, type[spark.DataType]] = {
    name: getattr(spark, called) for name, called in SCALARS.items()
}
_NAMES = {kind: name for name, kind in _SCALARS.items()}


def schema_of(given: object, called: str) -> spark.StructType:
    """Return what a data source says its schema is, a StructType or DDL, as a StructType.

    Raises:
        SourceUnfit: It is neither.
    """
    if isinstance(given, spark.StructType):
        return given
    if not isinstance(given, str):
        raise SourceUnfit(
            f"{called} has a schema that is a {type(given).__name__}",
            hint="declare `columns` of the source: they are what it is asked for",
        )
    try:
        return spark_schema(columns_of_ddl(given))
    except ModelError as error:
        raise SourceUnfit(
            f"{called} has the schema '{given}', which cannot be read: {error.message}",
            hint="declare `columns` of the source: they are what it is asked for",
        ) from error


def spark_schema(columns: Sequence[Column]) -> spark.StructType:
    """Return columns as PySpark has them.

    Raises:
        SqlError: It has no such type.
    """
    return spark.StructType(
        [spark.StructField(each.name, _to_spark(parse_type(each.type), each)) for each in columns]
    )


def columns_of(schema: spark.StructType, called: str) -> tuple[Column, ...]:
    """Return the columns of a data source with DuckDB's types.

    Raises:
        SourceUnfit: There is no such type here.
    """
    return tuple(
        Column(field.name, _from_spark(field.dataType, field.name, called))
        for field in schema.fields
    )


def _to_spark(kind: Type, column: Column) -> spark.DataType:
    match kind:
        case Decimal(precision=precision, scale=scale):
            return spark.DecimalType(precision, scale)
        case List(element=element):
            return spark.ArrayType(_to_spark(element, column))
        case Map(key=key, value=value):
            return spark.MapType(_to_spark(key, column), _to_spark(value, column))
        case Struct(fields=fields):
            return spark.StructType(
                [spark.StructField(name, _to_spark(own, column)) for name, own in fields]
            )
        case Scalar(name=name):
            if name in _SCALARS:
                return _SCALARS[name]()
            raise SqlError(f"PySpark has no type {name}, which column '{column.name}' is of")


def _from_spark(kind: spark.DataType, column: str, called: str) -> str:
    match kind:
        case spark.DecimalType(precision=precision, scale=scale):
            return f"DECIMAL({precision},{scale})"
        case spark.ArrayType(elementType=element):
            return f"{_from_spark(element, column, called)}[]"
        case spark.MapType(keyType=key, valueType=value):
            own = _from_spark(key, column, called), _from_spark(value, column, called)
            return f"MAP({own[0]}, {own[1]})"
        case spark.StructType(fields=fields):
            parts = (
                f'"{field.name.replace(chr(34), chr(34) * 2)}" '
                f"{_from_spark(field.dataType, column, called)}"
                for field in fields
            )
            return f"STRUCT({', '.join(parts)})"
        case spark.CharType() | spark.VarcharType():
            return "VARCHAR"
        case _:
            if type(kind) in _NAMES:
                return _NAMES[type(kind)]
            raise SourceUnfit(
                f"column '{column}' of {called} is of type {kind.simpleString()}, which has no "
                "form here",
                hint="declare `columns` of the source, and leave it out or name another type",
            )

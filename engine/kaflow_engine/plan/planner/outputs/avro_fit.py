"""Whether the columns of a query fit the Avro fields that an author gives."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from kaflow_engine.duck.wide.integers import BIGNUM
from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.columns import Column

Fields = Sequence[Mapping[str, object]]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES = (
    *("boolean", "int", "long", "float", "double", "bytes", "string"),
    *("array", "map", "record", "enum", "fixed"),
)
_WHOLE = frozenset({"int", "long", "float", "double", "decimal", "date", "time", "timestamp"})
_REAL = frozenset({"float", "double", "decimal"})
_TEXT = frozenset({"string", "bytes", "enum"})
_MOMENT = frozenset({"date", "time", "timestamp"})
_TAKEN: Mapping[str, frozenset[str]] = {
    "BOOLEAN": frozenset({"boolean"}),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), _WHOLE),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), _WHOLE),
    BIGNUM: frozenset({"decimal"}),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), _REAL),
    **dict.fromkeys(("VARCHAR", "JSON", "UUID", "ENUM"), _TEXT),
    "BLOB": frozenset({"bytes", "fixed", "decimal", "enum"}),
    "DATE": frozenset({"date", "timestamp"}),
    "TIME": frozenset({"time"}),
    "TIMESTAMP": _MOMENT,
    "[]": frozenset({"array"}),
    "STRUCT": frozenset({"record", "map"}),
    "MAP": frozenset({"map"}),
}
"""Kind of a DuckDB type → what it can be written as."""


def wrong_fields(
    schema: str,
    name: str,
    fields: Fields,
    places: Sequence[Location],
    columns: Sequence[Column],
) -> Iterator[ModelError]:
    """Yield what is wrong with the fields themselves, or between them and the columns.

    Args:
        schema: What the file calls it.
        name: Of the record.
        fields: As the author gives them.
        places: Where each stands.
        columns: Of the query.
    """
    alone = [*_names(schema, fields, places), *_types(name, fields, places)]
    if alone:
        yield from alone
        return
    from kaflow_engine.formats.avro.schema import declared, record_of  # they import pyarrow
    from kaflow_engine.formats.avro.types import nullable
    from kaflow_engine.formats.types import type_text

    types = {column.name: column.type for column in columns}
    for field, at in zip(record_of(_record(name, fields)).fields, places, strict=True):
        inner = nullable(field.type)
        if field.name not in types:
            if inner is None and field.default is None:
                yield ModelError(
                    f"the field '{field.name}' of {schema} is not a column of the query",
                    at,
                    f"select it AS {field.name}, or give the field a default",
                )
            continue
        kind = inner[1] if inner else field.type
        written, wanted = types[field.name], _kind(kind)
        if wanted is not None and wanted not in _TAKEN.get(_family(written), {wanted}):
            yield ModelError(
                f"the query column '{field.name}' is of type {written}, and its field in "
                f"{schema} is {wanted}",
                at,
                f"write CAST(… AS {type_text(declared(kind))}) AS {field.name}, "
                "or change the type of the field",
            )


def _names(schema: str, fields: Fields, places: Sequence[Location]) -> Iterator[ModelError]:
    seen: set[object] = set()
    for field, at in zip(fields, places, strict=True):
        name = field.get("name")
        if name in seen:
            yield ModelError(f"two fields of {schema} are called '{name}'", at, "remove one")
        elif not isinstance(name, str) or not _NAME.fullmatch(name):
            hint = "use letters, digits and '_', and no digit first"
            yield ModelError(f"'{name}' cannot be a field of an Avro record", at, hint)
        seen.add(name)


def _types(name: str, fields: Fields, places: Sequence[Location]) -> Iterator[ModelError]:
    from kaflow_engine.formats.avro.types import parse_avro

    for end, (field, at) in enumerate(zip(fields, places, strict=True), 1):
        try:
            parse_avro(_record(name, fields[:end]))
        except ModelError:
            kind = field.get("type")
            if isinstance(kind, str):
                yield UnknownName("Avro type", kind, _TYPES, at)
            else:
                yield ModelError(
                    f"the type of the field '{field.get('name')}' is not one that Avro has",
                    at,
                    'write it as in an Avro schema, such as ["null", "string"]',
                )
            return  # later fields may refer to this one


def _record(name: str, fields: Fields) -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


def _kind(avro: object) -> str | None:
    """Name the kind of an Avro type; None for what can be of several."""
    from kaflow_engine.formats.avro.types import Array, Enum, Fixed, MapOf, Primitive, Record

    match avro:
        case Primitive(name=name, logical=logical):
            words = logical.name.removeprefix("local-").partition("-")[0] if logical else name
            return words if words in _WHOLE else name
        case Fixed(logical=logical):
            return "decimal" if logical and logical.name == "decimal" else "fixed"
        case Array():
            return "array"
        case MapOf():
            return "map"
        case Record():
            return "record"
        case Enum():
            return "enum"
        case _:
            return None


def _family(duck: str) -> str:
    if duck.endswith("]"):
        return "[]"
    return re.split(r"[(_ ]", duck, maxsplit=1)[0]

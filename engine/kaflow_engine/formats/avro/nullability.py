"""Fields of Avro schemas that can be NULL."""

from collections.abc import Iterator

from kaflow_engine.formats.avro.schema import record_of
from kaflow_engine.formats.avro.types import NULL, Avro, Record, Union


def nullable_fields(schema: str) -> frozenset[str]:
    """Return the fields that are unions with null, in lower case; a field of a field is `a.b`.

    Raises:
        ModelError: The schema is not that of a record.
    """
    return frozenset(_inside(record_of(schema), ""))


def _inside(record: Record, before: str) -> Iterator[str]:
    for field in record.fields:
        path = before + field.name.lower()
        kinds = field.type.branches if isinstance(field.type, Union) else (field.type,)
        if NULL in kinds:
            yield path
        for kind in kinds:
            yield from _of_kind(kind, path)


def _of_kind(kind: Avro, path: str) -> Iterator[str]:
    if isinstance(kind, Record):
        yield from _inside(kind, f"{path}.")

"""Raw values as a format: the bytes of a value are one column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.contract import Evidence, IdSchema, SchemaById, Traits, WithoutSchemas
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.decoded import Decoded, Encoded

VALUE = Column("value", "BLOB")
_TYPES = ("BLOB", "VARCHAR")


class RawFormat(WithoutSchemas):
    """One column, `value` of type BLOB unless a file declares another one or VARCHAR."""

    traits = Traits(title="raw", value="value", registered=False, is_json=False)

    def declared(self, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        """Return the one column, declared or not."""
        if columns is None:
            return (VALUE,)
        _one(columns, "a raw topic has one column", "declare one column, as BLOB or VARCHAR")
        return columns

    def columns(self, evidence: Evidence) -> tuple[Column, ...] | None:
        """Return the one column that values have where no one says more."""
        return (VALUE,)

    def schema_of(self, columns: Sequence[Column], name: str) -> str | None:
        """Return None: bytes need no schema."""
        hint = "select one column, as BLOB or VARCHAR, and the key of the record AS _key"
        _one(columns, "a raw output has one column", hint)
        return None

    def decode(
        self,
        values: "pa.Array | pa.ChunkedArray",
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> "Decoded":
        """Decode one column of bytes, or of text."""
        from kaflow_engine.formats.raw.decode import decode_raw

        return decode_raw(values, columns)

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> "RawEncoder":
        """Return what writes the bytes of a column."""
        (column,) = columns
        return RawEncoder(column.name)


@dataclass(frozen=True, slots=True)
class RawEncoder:
    """Writes one column as it is; NULL is bad, for a record without value means a deletion."""

    name: str

    def sql(self, names: Mapping[str, str]) -> str | None:
        """Return None: a BLOB is no VARCHAR, and NULL is looked for."""
        return None

    def encode(self, rows: "pa.Table") -> "Encoded":
        """Return the bytes of each row."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from kaflow_engine.formats.decoded import BadValue, Encoded

        array = rows.column(self.name).combine_chunks().cast(pa.binary())
        why = f"column '{self.name}' is NULL, and a raw value cannot be"
        missing = pc.indices_nonzero(array.is_null()).to_pylist()
        return Encoded(array, tuple(BadValue(row, "CannotEncode", why) for row in missing))


def _one(columns: Sequence[Column], rule: str, hint: str) -> None:
    if len(columns) != 1:
        names = ", ".join(f"'{column.name}'" for column in columns) or "none"
        raise ModelError(f"{rule}, and this one has {names}", hint=hint)
    (column,) = columns
    if column.type not in _TYPES:
        what = f"'{column.name}' is {column.type}"
        raise ModelError(f"{rule} of type BLOB or VARCHAR, and {what}", hint=hint)

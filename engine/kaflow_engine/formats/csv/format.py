"""CSV as a format: one line a value, its columns declared, in their order."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.contract import Evidence, IdSchema, SchemaById, Traits, WithoutSchemas
from kaflow_engine.formats.encoders import SqlEncoder
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.decoded import Decoded


class CsvFormat(WithoutSchemas):
    """Lines without a header: what a field is called, and its type, is declared."""

    traits = Traits(
        title="CSV", value="line of CSV", registered=False, is_json=False, positional=True
    )

    def declared(self, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        """Return the declared columns, of which there is at least one, all of plain types."""
        if not columns:
            raise ModelError(
                "lines of CSV do not name their columns",
                hint="declare all columns with their types, in the order of the fields",
            )
        _check(columns, "declare it as VARCHAR, and take it apart in the query")
        return columns

    def columns(self, evidence: Evidence) -> tuple[Column, ...] | None:
        """Return None: a line says nothing of its columns."""
        return None

    def schema_of(self, columns: Sequence[Column], name: str) -> str | None:
        """Return None: a line has no schema."""
        if not columns:
            raise ModelError(
                "a line of CSV has at least one column",
                hint="select a column besides _key",
            )
        _check(columns, "cast it to VARCHAR in the query, or use another format")
        return None

    def decode(
        self,
        values: "pa.Array | pa.ChunkedArray",
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> "Decoded":
        """Decode one line a value."""
        from kaflow_engine.formats.csv.decode import decode_csv

        return decode_csv(values, columns)

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> SqlEncoder:
        """Return what writes lines with these fields, in their order."""
        from kaflow_engine.formats.csv.encode import csv_line_sql

        return SqlEncoder(tuple(columns), csv_line_sql)


def _check(columns: Sequence[Column], hint: str) -> None:
    from kaflow_engine.formats.types import Decimal, Scalar, parse_type

    for column in columns:
        kind = parse_type(column.type)
        if not isinstance(kind, Scalar | Decimal) or kind == Scalar("JSON"):
            raise ModelError(
                f"CSV has no type for {column.type} (column '{column.name}')", hint=hint
            )

"""XML as a format: one document a value, its columns declared."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, assert_never

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.contract import Evidence, IdSchema, SchemaById, Traits, WithoutSchemas
from kaflow_engine.formats.types import Decimal, List, Map, Scalar, Struct, Type, parse_type
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.decoded import Decoded
    from kaflow_engine.formats.xml.encode import XmlEncoder


class XmlFormat(WithoutSchemas):
    """Columns are found by the names of elements, else of attributes; a file declares them."""

    traits = Traits(title="XML", value="XML document", registered=False, is_json=False)

    def declared(self, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        """Return the declared columns, of which there is at least one."""
        if not columns:
            raise ModelError(
                "XML does not say the types of its columns",
                hint="declare those that are read, with their types",
            )
        return columns

    def columns(self, evidence: Evidence) -> tuple[Column, ...] | None:
        """Return None: an element may be a text, or a list of one."""
        return None

    def schema_of(self, columns: Sequence[Column], name: str) -> str | None:
        """Return None: a document has no schema.

        Raises:
            ModelError: A name is none of an element.
        """
        from kaflow_engine.formats.xml.encode import is_name

        for column in columns:
            for name in (column.name, *_fields_in(parse_type(column.type))):
                if not is_name(name):
                    raise ModelError(
                        f"XML has no element '{name}'",
                        hint="give the column or field a name of letters, digits and _",
                    )
        return None

    def decode(
        self,
        values: "pa.Array | pa.ChunkedArray",
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> "Decoded":
        """Decode one document a value."""
        from kaflow_engine.formats.xml.decode import decode_xml

        return decode_xml(values, columns)

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> "XmlEncoder":
        """Return what writes documents with these elements."""
        from kaflow_engine.formats.xml.encode import XmlEncoder

        return XmlEncoder(tuple(columns))


def _fields_in(kind: Type) -> Iterator[str]:
    """Yield the names of the fields of structs in a type, at every depth."""
    match kind:
        case Struct(fields=fields):
            for name, inner in fields:
                yield name
                yield from _fields_in(inner)
        case List(element=inner) | Map(value=inner):
            yield from _fields_in(inner)
        case Scalar() | Decimal():
            return
        case _:
            assert_never(kind)

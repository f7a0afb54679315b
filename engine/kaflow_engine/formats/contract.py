"""What a format of record values must offer: decode, encode, columns, schemas.

An implementation is a folder beside this file and a row of `model.formats.FORMATS`, or a plugin.
Whoever reads or writes values asks the format, and never compares its name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kaflow_engine.errors import SinkError, UnknownName
from kaflow_engine.model.columns import Column
from kaflow_engine.model.formats import FORMATS, PLUGIN

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for traits only, and it takes long to load

    from kaflow_engine.formats.decoded import Decoded, Encoded
    from kaflow_engine.formats.schema_registry import Registry

SchemaById = Callable[[int], str]
"""Returns the text of a schema, or raises UnknownSchema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What can be asked of a format without a value or a schema."""

    title: str
    """Its name in messages."""
    value: str
    """What one value is, in messages: such as `JSON object`."""
    registered: bool
    """Schemas are in the schema registry, and each value names its own by id."""
    language: str | None = None
    """What the registry calls the language of its schemas; None: it has none there."""
    is_json: bool
    """A value is JSON text: it can be shown as it is, and made of the columns of a file."""
    positional: bool = False
    """Cells have no names: whoever decodes a value asks for all columns, in their order."""


def no_schema(schema_id: int) -> str:
    """Stand for a registry where no format asks one.

    Raises:
        LookupError: Always.
    """
    raise LookupError(f"schema {schema_id}: there is no registry")


class IdSchema(NamedTuple):
    """A schema of the registry."""

    id: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where the columns of a topic can be learned from; each is asked only if it is needed."""

    sample: Callable[[], Sequence[bytes]]
    """Returns some of its values."""
    schema: Callable[[], str | None]
    """Returns the newest schema that is registered for its values."""

    @staticmethod
    def of_schema(schema: str) -> "Evidence":
        """Return what one schema says, without a topic."""
        return Evidence(sample=lambda: (), schema=lambda: schema)


class Encoder(Protocol):
    """Writes rows with one set of columns as values."""

    def sql(self, names: Mapping[str, str]) -> str | None:
        """Return a DuckDB expression of the value, VARCHAR; None: rows go through `encode`.

        Args:
            names: Column → the SQL of its value.
        """
        ...

    def encode(self, rows: "pa.Table") -> "Encoded":
        """Encode rows, whose columns are found by name; a row that does not fit is bad."""
        ...


class Format(Protocol):
    """One format of values."""

    @property
    def traits(self) -> Traits:
        """What it is like."""
        ...

    def declared(self, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        """Return the columns of a topic for which a file declares these, None: it declares none.

        None: they are to be learned from `Evidence`.

        Raises:
            ModelError: Values cannot have such columns, or a file must declare them.
        """
        ...

    def columns(self, evidence: Evidence) -> tuple[Column, ...] | None:
        """Return the columns of a topic; None or none at all: they cannot be known yet.

        Raises:
            ModelError: A schema cannot be read.
        """
        ...

    def nullable(self, schema: str) -> frozenset[str]:
        """Return the fields that a registered schema lets be NULL, in lower case; a field of a
        field is `a.b`.

        Raises:
            ModelError: The schema cannot be read.
        """
        ...

    def schema_of(self, columns: Sequence[Column], name: str) -> str | None:
        """Return the schema of rows with these columns; None: the format has no schemas.

        Raises:
            ModelError: A column has a name or a type that the format does not have.
        """
        ...

    def register(self, registry: "Registry", subject: str, schema: str) -> int:
        """Register a schema that `schema_of` has made, or that stands for one; return its id.

        Raises:
            SinkError: The registry refuses it, or the format has no schemas.
        """
        ...

    def decode(
        self,
        values: "pa.Array | pa.ChunkedArray",
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> "Decoded":
        """Decode values (binary, none null); whether one is bad depends on it and the columns."""
        ...

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> Encoder:
        """Return what writes rows with these columns; `schema` where there are schemas."""
        ...


class WithoutSchemas:
    """What formats have in common whose values need no schema."""

    traits: Traits

    def nullable(self, schema: str) -> frozenset[str]:
        """Return none: no schema says it."""
        return frozenset()

    def register(self, registry: "Registry", subject: str, schema: str) -> int:
        """Refuse.

        Raises:
            SinkError: Always.
        """
        raise SinkError(
            f"subject '{subject}' has no schema to register: {self.traits.title} has none"
        )


def format_of(name: str) -> Format:
    """Return the format of a name, imported on first use.

    Raises:
        UnknownName: There is none; says which there are.
        ModelError: A plugin cannot be loaded.
    """
    if "." in name:
        return _class_of(PLUGIN)(name)
    if name not in FORMATS:
        raise UnknownName("format", name, FORMATS)
    return _loaded(FORMATS[name])


@lru_cache(maxsize=64)
def _loaded(target: str) -> Format:
    found: Format = _class_of(target)()
    return found


def _class_of(target: str) -> Callable[..., Format]:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)

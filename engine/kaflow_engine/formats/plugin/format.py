"""The formats of packages as a `Format`: no schemas, columns from the file or from values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.contract import Evidence, IdSchema, SchemaById, Traits, WithoutSchemas
from kaflow_engine.model.columns import Column
from kaflow_engine.model.formats import parts_of
from kaflow_engine.plugins.formats import FormatPlugin, format_plugin

if TYPE_CHECKING:
    import pyarrow as pa

    from kaflow_engine.formats.decoded import Decoded, Encoded

T = TypeVar("T")


class PluginFormat(WithoutSchemas):
    """The format that a package offers under a name."""

    def __init__(self, name: str) -> None:
        """Import the plugin.

        Raises:
            UnknownName: No package offers it; says which there are.
            ModelError: It cannot be imported, or is no format.
        """
        self._name, options = parts_of(name)
        self._plugin = format_plugin(self._name, options)
        self.traits = Traits(
            title=self._name,
            value=f"value of {self._name}",
            registered=False,
            is_json=False,
            positional=bool(getattr(self._plugin, "positional", False)),
        )

    def declared(self, columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
        """Return the declared columns; None: the plugin is asked for them."""
        if columns is not None:
            self._require(columns, "declare it of another type, or leave it out")
        elif self.traits.positional:
            raise ModelError(
                f"values of {self._name} do not name their columns",
                hint="declare all columns with their types, in the order of the values' cells",
            )
        return columns

    def columns(self, evidence: Evidence) -> tuple[Column, ...] | None:
        """Return what the plugin finds in values; None: there are none yet."""
        values = evidence.sample()
        if not values:
            return None
        found = self._asked("columns", lambda: self._plugin.columns(values))
        if not found:
            raise ModelError(
                f"'{self._name}' does not tell the columns of its values", hint="declare them"
            )
        from kaflow_engine.formats.types import parse_type, type_text

        return tuple(Column(name, type_text(parse_type(kind))) for name, kind in found.items())

    def schema_of(self, columns: Sequence[Column], name: str) -> str | None:
        """Return None: there are no schemas."""
        self._require(columns, "cast it to another type in the query, or leave it out")
        return None

    def decode(
        self,
        values: "pa.Array | pa.ChunkedArray",
        columns: Sequence[Column],
        schema_by_id: SchemaById,
    ) -> "Decoded":
        """Let the plugin decode values.

        Raises:
            SourceUnfit: The plugin does not keep its contract.
        """
        from kaflow_engine.formats.plugin.values import decode_values

        return decode_values(self._name, self._plugin, values, columns)

    def encoder(self, columns: Sequence[Column], schema: IdSchema | None) -> "PluginEncoder":
        """Return what lets the plugin write rows with these columns."""
        return PluginEncoder(self._name, self._plugin, tuple(columns))

    def _require(self, columns: Sequence[Column], hint: str) -> None:
        named = {column.name: column.type for column in columns}
        wrong = self._asked("unfit", lambda: self._plugin.unfit(named))
        for name, why in wrong.items():
            raise ModelError(f"'{self._name}' cannot have column '{name}': {why}", hint=hint)

    def _asked(self, what: str, ask: Callable[[], T]) -> T:
        try:
            return ask()
        except Exception as error:
            raise ModelError(
                f"plugin '{self._name}' fails at '{what}': {type(error).__name__}: {error}",
                hint="correct the plugin",
            ) from error


@dataclass(frozen=True, slots=True)
class PluginEncoder:
    """Writes rows as values of a plugin's format."""

    name: str
    plugin: FormatPlugin
    columns: tuple[Column, ...]

    def sql(self, names: Mapping[str, str]) -> str | None:
        """Return None: the plugin writes them."""
        return None

    def encode(self, rows: "pa.Table") -> "Encoded":
        """Let the plugin encode rows.

        Raises:
            SinkUnfit: The plugin does not keep its contract.
        """
        from kaflow_engine.formats.plugin.values import encode_rows

        given = rows.select([column.name for column in self.columns])
        return encode_rows(self.name, self.plugin, given, self.columns)

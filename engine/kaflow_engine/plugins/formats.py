"""What a plugin offers that is a format of values: the version of this contract is 2.

A format keeps nothing between calls, and asks no one: the same bytes are the same row, whenever and
wherever they are read, for a batch that runs again must deliver what it has delivered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from kaflow_engine.errors import ModelError
from kaflow_engine.plugins.installed import FORMATS, loaded, require_parts
from kaflow_engine.plugins.options import wrong_options

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for columns only, and it takes long to load


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedRows:
    """What a format makes of values."""

    rows: "pa.Table"
    """A row for each value that can be read, in their order, with the columns that were asked for,
    in any order and beside others; DuckDB casts their values."""
    failures: Mapping[int, str] = field(default_factory=dict[int, str])
    """Places, from 0, of values that cannot be read, and why: they are dead letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedValues:
    """What a format makes of rows."""

    values: "pa.Array"
    """Binary, one for each row; NULL where there is none."""
    failures: Mapping[int, str] = field(default_factory=dict[int, str])
    """Places of rows that the format cannot hold, and why: their records are dead letters."""


class FormatPlugin(Protocol):
    """A format of values; light to load, for planning asks it.

    It may say `positional = True`: cells have no names, so that it is asked for all columns that
    are declared, in their order, used or not.
    """

    def columns(self, sample: Sequence[bytes]) -> Mapping[str, str] | None:
        """Return the columns of a topic with their DuckDB types, of which some values, at least
        one, are given; None: they must be declared."""
        ...

    def unfit(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """Return why values cannot have some of these columns, by column; none: they can."""
        ...

    def decode(self, values: "pa.Array", columns: Mapping[str, str]) -> DecodedRows:
        """Decode values (binary, at least one, none NULL) to columns with these DuckDB types.

        However values are cut into calls, they become the same rows. Where it raises, values are
        given to it again, fewer at a time, until the one is found that it cannot read.
        """
        ...

    def encode(self, rows: "pa.Table", columns: Mapping[str, str]) -> EncodedValues:
        """Encode rows (at least one, with these columns), each by itself; where it raises, it is
        given them again as values are."""
        ...


class FormatPluginKind(Protocol):
    """A format that takes options; light to load."""

    @property
    def options(self) -> type[BaseModel]:
        """What an author may say of it, as a pydantic model."""
        ...

    def with_options(self, options: Any) -> FormatPlugin:
        """Return the format as these options make it; the same options are the same format."""
        ...


def format_plugin(name: str, options: Mapping[str, Any]) -> FormatPlugin:
    """Return the format that a package offers, imported on first use.

    Args:
        name: Of the plugin.
        options: What the author says.

    Raises:
        UnknownName: No package offers it, says which there are; or it has no such option.
        ModelError: It cannot be imported, or is no format, or does not take the options.
    """
    found = loaded(FORMATS, name)
    if not hasattr(found, "with_options"):
        if options:
            raise ModelError(f"'{name}' takes no options", hint="remove format_options")
        return found
    if not hasattr(found, "options"):
        raise ModelError(
            f"plugin '{name}' is no format: it lacks 'options'",
            hint="see FormatPluginKind of kaflow_engine.api.formats",
        )
    wrong = [*wrong_options(name, found.options, options, {"": None})]
    if wrong:
        raise wrong[0]
    try:
        made = found.with_options(found.options.model_validate(dict(options)))
    except Exception as error:
        raise ModelError(
            f"plugin '{name}' makes no format of its options: {type(error).__name__}: {error}",
            hint="correct 'with_options' of the plugin, or the format_options that it gets",
        ) from error
    require_parts(FORMATS, f"the format of plugin '{name}'", made)
    return made

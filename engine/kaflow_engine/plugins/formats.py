"""What a plugin offers that is a format of values: the version of this contract is 1.

A format keeps nothing between calls, and asks no one: the same bytes are the same row, whenever and
wherever they are read, for a batch that runs again must deliver what it has delivered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kaflow_engine.plugins.installed import FORMATS, loaded

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


def format_plugin(name: str) -> FormatPlugin:
    """Return the format that a package offers, imported on first use.

    Raises:
        UnknownName: No package offers it; says which there are.
        ModelError: It cannot be imported, or is no format.
    """
    return loaded(FORMATS, name)

"""Amounts in one currency: rows of other currencies become it, and those without an amount none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from kaflow_engine.api.transforms import GivenTransform, NewRows

if TYPE_CHECKING:
    import pyarrow as pa


class Options(BaseModel):
    """What an author may say under `options`."""

    model_config = ConfigDict(extra="forbid")

    column: str = "amount"
    """The column that holds an amount."""
    rate: float = Field(gt=0)
    """What one of it is in the other currency."""


class Converted:
    """The kind of transform, as planning asks it; light to load."""

    contract = 1
    options = Options

    def columns(self, options: Options) -> Mapping[str, str | None]:
        """Return the column that it adds."""
        return {f"{options.column}_converted": "DOUBLE"}

    def open(self, given: GivenTransform) -> "Conversion":
        """Begin to convert."""
        return Conversion(Options.model_validate(given.options))


@dataclass(frozen=True)
class Conversion:
    """What converts rows; it remembers none."""

    options: Options

    def __call__(self, rows: "pa.Table") -> NewRows:
        """Convert amounts; a row without one is left out, and a negative one fails."""
        import pyarrow as pa

        amounts = rows[self.options.column].to_pylist()
        negative = {at: f"{n} is negative" for at, n in enumerate(amounts) if n and n < 0}
        kept = [at for at, n in enumerate(amounts) if n is not None and at not in negative]
        converted = [float(amounts[at]) * self.options.rate for at in kept]
        column = f"{self.options.column}_converted"
        made = rows.take(pa.array(kept, pa.int64()))
        made = made.append_column(column, pa.array(converted, pa.float64()))
        return NewRows(rows=made, of=kept, failures=negative)

"""The highest amount so far: what rows teach, and later batches see."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from kaflow_engine.api.transforms import GivenTransform, NewRows

if TYPE_CHECKING:
    import pyarrow as pa


class Options(BaseModel):
    """What an author may say under `options`."""

    model_config = ConfigDict(extra="forbid")

    column: str = "amount"
    """The column that is compared."""


class Ranked:
    """The kind of transform, as planning asks it; light to load."""

    contract = 2
    options = Options

    def columns(self, options: Options) -> Mapping[str, str | None]:
        """Return the column that it adds."""
        return {f"highest_{options.column}_before": "DOUBLE"}

    def merge(self, key: str, before: Any, added: Sequence[Any]) -> Any:
        """Return the highest of all, in whatever order they come."""
        return max(each for each in (before, *added) if each is not None)

    def open(self, given: GivenTransform) -> "Ranks":
        """Begin to rank."""
        return Ranks(given)


@dataclass(frozen=True)
class Ranks:
    """What ranks rows; it sees what the batches before have taught."""

    given: GivenTransform

    def __call__(self, rows: "pa.Table") -> NewRows:
        """Add the highest amount up to the batch before; a row without one teaches nothing."""
        import pyarrow as pa

        column = Options.model_validate(self.given.options).column
        before = self.given.state.get(column)
        amounts = rows[column].to_pylist()
        learned = [(at, column, float(n)) for at, n in enumerate(amounts) if n is not None]
        self.given.metrics.count("rows", rows.num_rows, column=column)
        highest = pa.array([before] * rows.num_rows, pa.float64())
        made = rows.append_column(f"highest_{column}_before", highest)
        return NewRows(rows=made, learned=learned)

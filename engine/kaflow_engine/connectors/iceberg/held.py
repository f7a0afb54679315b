"""What a table says of the batches that it has: whose they are, and which was the last.

It stands in the properties of the table, changed in the commit of the rows, so that no snapshot
which expires takes it away; the snapshot of a batch says the same for whoever looks at it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.connectors.contract import Owner
from kaflow_engine.connectors.holding import Holding

_STATE, _GENERATION = "kaflow.state", "kaflow.generation"
_BATCH, _MARK, _ROWS = "kaflow.batch", "kaflow.mark", "kaflow.rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The last batch of the state that a table belongs to."""

    state: str
    generation: int
    batch: int = 0
    """0: none yet."""
    mark: str = ""
    rows: int = 0
    """Of the batch, before those of one key were put together."""

    @staticmethod
    def of(properties: Mapping[str, str]) -> "Held | None":
        """Return what the properties of a table say; None: no state has it."""
        if _STATE not in properties:
            return None
        return Held(
            state=properties[_STATE],
            generation=int(properties[_GENERATION]),
            batch=int(properties[_BATCH]),
            mark=properties[_MARK],
            rows=int(properties[_ROWS]),
        )

    @property
    def properties(self) -> dict[str, str]:
        """How it is said."""
        return {
            _STATE: self.state,
            _GENERATION: str(self.generation),
            _BATCH: str(self.batch),
            _MARK: self.mark,
            _ROWS: str(self.rows),
        }

    def is_of(self, owner: Owner) -> bool:
        """Tell whether it is of a state."""
        return (self.state, self.generation) == (owner.state, owner.generation)

    def holding(self, table: str) -> Holding:
        """Return it as any sink says what it holds."""
        return Holding(
            state=self.state,
            generation=self.generation,
            batch=self.batch,
            mark=self.mark,
            table=table,
        )

"""What a sink holds of a pipeline: how any sink answers a start that asks what was delivered."""

from dataclasses import dataclass

from kaflow_engine.connectors.same_batch import Kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A batch of a state that a sink holds; what the state has delivered before is there, too."""

    state: str
    generation: int
    batch: int
    """0: the sink belongs to the state, which has delivered nothing yet."""
    mark: str = ""
    """What tells the batch from others of its number (`batch_mark`); empty: the sink has no note
    of it."""
    table: str | None = None
    """The table that holds it; None: topics, as the pipeline's own topic says."""
    kept_in: Kept = "table"
    """What `table` names."""

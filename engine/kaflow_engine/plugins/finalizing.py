"""What hears of batches that are committed: whatever may only follow once nothing runs again."""

from typing import Protocol


class Finalizing(Protocol):
    """Part of a plugin on the driver, in the process of the run."""

    def finalized(self, batch: int) -> None:
        """Hear that a batch is committed, and delivered by each sink.

        At least once: a run that begins says it again of the last one. Numbers ascend.

        Raises:
            SinkAway: It may heal: the run waits, and says it again.
            SinkUnfit: Someone must act.
        """
        ...

    def ended(self) -> None:
        """Hear that the run is over; nothing follows."""
        ...

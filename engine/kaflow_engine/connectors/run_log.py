"""What the log of a pipeline's runs must offer: epochs, fencing, markers and kept batches.

A run takes the next epoch, and nothing that an older run does counts from then on. What was
delivered, and batches that no checkpoint covers, are noted there. It is no part of the state, so
that it still knows when the state is lost or copied.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self

from kaflow_engine.connectors.holding import Holding


class Delivered(NamedTuple):
    """What was delivered of a delivery partition."""

    batch: int
    """The last batch of which it was given rows."""
    rows: int
    """Rows and dead letters of that batch."""
    digest: str = ""
    """Checksum of these rows where the batch has more of them; empty: it has no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """What a run knows once its predecessors can no longer write, or before it asks them to end."""

    epoch: int
    epoch_offset: int
    """Where the epoch stands in the log; a newer epoch can only stand behind it."""
    delivered: Mapping[tuple[str, int], int]
    """`(sink, delivery partition)` → the last batch that was delivered, maybe in part."""
    rows: Mapping[tuple[str, int], int]
    """`(sink, delivery partition)` → rows and dead letters of that partition in that batch."""
    digests: Mapping[tuple[str, int], str]
    """`(sink, delivery partition)` → checksum of these rows, where the batch has more of them."""
    batches: Mapping[int, Mapping[str, Any]]
    """Batch records kept here for this state and generation, by batch."""
    holdings: frozenset[Holding]
    """What was delivered, from whatever state."""
    others: Mapping[str, "RunStart"] = field(default_factory=dict[str, "RunStart"])
    """What other clusters know of what was delivered to them, by cluster."""

    def delivered_to(self, sink: str) -> dict[int, Delivered]:
        """Return what was delivered to one sink, by delivery partition."""
        return {
            p: Delivered(batch, self.rows[name, p], self.digests.get((name, p), ""))
            for (name, p), batch in self.delivered.items()
            if name == sink
        }


Check = Callable[[RunStart], None]
"""Refuses a start, by what was delivered and kept."""


def no_check(start: RunStart) -> None:
    """Start whatever was delivered."""


class RunLog(Protocol):
    """The runs of one pipeline, as its one driver sees them; kept for all runs of a process."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    def ensure(self) -> None:
        """Create the log unless it exists.

        Raises:
            SinkError: It cannot be created.
            StateError: It exists, but is not fit.
        """
        ...

    def broker_time(self) -> int | None:
        """Return the clock of the system that keeps the log, in epoch milliseconds, if it says."""
        ...

    def start_run(
        self,
        state_id: str,
        generation: int,
        check: Check = no_check,
        after: int = 0,
        doubtful: int | None = None,
    ) -> RunStart:
        """Take the next epoch (> `after`), fence everything older, and read what was delivered.

        Args:
            state_id: The state the run works on.
            generation: Its generation.
            check: Called before anything is written, so that a start that is refused leaves a live
                run alone, and with what that run may have delivered since.
            after: The greatest epoch found elsewhere, should the log have been lost.
            doubtful: A batch of which only the log knows whether it was delivered.

        Raises:
            StateError: The log was lost while a batch was `doubtful`; or what `check` raises.
            TakenOver: Another run starts at the same time, or has replaced this process's.
        """
        ...

    def claim(self, batch: int, mark: str) -> None:
        """Note that a batch is delivered, where no task has noted it; before it is committed.

        Raises:
            TakenOver: A newer run has started.
        """
        ...

    def require_newest(self) -> None:
        """Go on only while no newer run has started.

        Raises:
            TakenOver: One has.
        """
        ...

    def put_batch(self, batch: int, record: Mapping[str, object]) -> None:
        """Keep a batch record until `drop_batches`.

        Raises:
            TakenOver: A newer run has started.
        """
        ...

    def drop_batches(self, batches: Collection[int]) -> None:
        """Remove batch records that a checkpoint covers.

        Raises:
            TakenOver: A newer run has started.
        """
        ...

    def states(self) -> set[tuple[str, int]]:
        """Return the (state id, generation) pairs of which it notes deliveries."""
        ...

    def forget(self, states: Collection[tuple[str, int]]) -> int:
        """Remove what is noted of dropped states; returns how many notes there were.

        Raises:
            TakenOver: A newer run has started.
        """
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...

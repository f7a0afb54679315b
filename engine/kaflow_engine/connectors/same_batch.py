"""A batch that runs again is the one that a sink holds, or is refused: what is said then."""

from typing import Literal

from kaflow_engine.errors import StateError

Kept = Literal["table", "folder", "ledger"]
"""What knows the batches of an output."""


def elsewhere(kept: Kept) -> str:
    """Return what a pipeline can do that cannot go on with what a sink holds."""
    return f"give the pipeline a new `id:` and another {kept}: all rows are written again"


def other_records(kept: Kept, name: str, batch: int) -> StateError:
    """Return the error for a batch that a sink holds with other records than its log has."""
    return StateError(
        f"{kept} '{name}' holds batch {batch} of this state with other records than its log has "
        "for it: another copy of the state was run",
        hint=f"restore the state directory that was run last, or {elsewhere(kept)}",
    )


def other_rows(kept: Kept, batch: int, had: int, has: int, place: str) -> StateError:
    """Return the error for a batch that has other rows now than it has written.

    Args:
        kept: What holds the batch.
        batch: Its number.
        had: Rows that it has written.
        has: Rows that it has now.
        place: Names the rows, as in "to table 'orders'".
    """
    return StateError(
        f"batch {batch} has written {had:,} rows {place}, and has {has:,} now that it runs again: "
        "its inputs, or what it looks up, are not what they were",
        hint=elsewhere(kept),
    )

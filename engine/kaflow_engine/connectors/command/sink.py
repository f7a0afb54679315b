"""Statements over the rows of each batch as a kind of sink: what they promise."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from kaflow_engine.connectors.contract import (
    Capabilities,
    Delivery,
    Outlet,
    Settings,
    Unfit,
)
from kaflow_engine.model.columns import Column

WITHOUT_LEDGER = Capabilities(
    accepts=frozenset({"append", "upsert"}),
    commit="driver",
    guarantee="at_least_once",
    reason="a batch whose statements have run runs them again after a failure; with 'ledger' they "
    "run once",
    ordered=True,
    backfills=False,
)
WITH_LEDGER = replace(
    WITHOUT_LEDGER,
    guarantee="exactly_once",
    reason="the statements and the number of their batch are one transaction of the database that "
    "has the ledger; files that they write are outside of it",
)
TAKEN = ("_op", "_key", "_row")
"""Columns of `batch` beside those of the output."""


class Commands:
    """Exactly once where a ledger in the same database says which batch it has."""

    @cached_property
    def outlet(self) -> Outlet | None:
        """What runs statements."""
        from kaflow_engine.connectors.command.outputs import CommandOutlet  # it loads Arrow

        return CommandOutlet()

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what statements promise."""
        return WITH_LEDGER if settings.get("ledger") else WITHOUT_LEDGER

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return columns whose names `batch` has already."""
        return [
            Unfit(
                why=f"'batch' has a column '{column.name}' of its own",
                hint="select it under another name",
            )
            for column in columns
            if column.name.lower() in TAKEN
        ]

"""Tables of PostgreSQL as a kind of sink: what they promise."""

from collections.abc import Sequence
from functools import cached_property

from kaflow_engine.connectors.contract import (
    Capabilities,
    Delivery,
    Outlet,
    Settings,
    Unfit,
)
from kaflow_engine.model.columns import Column

CAPABILITIES = Capabilities(
    accepts=frozenset({"append", "upsert"}),
    commit="task",
    guarantee="exactly_once",
    reason="rows and the number of their batch are one transaction; rows of one batch in several "
    "partitions may become visible one after the other",
    ordered=True,
    backfills=False,
    listed_keys=True,
)


class PostgresTables:
    """Exactly once, whatever the author asks for: a ledger beside the table says what it has."""

    @cached_property
    def outlet(self) -> Outlet | None:
        """What opens tables."""
        from kaflow_engine.connectors.postgres.outputs import PostgresOutlet  # it loads Arrow

        return PostgresOutlet()

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what a table promises."""
        return CAPABILITIES

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return columns that no table can keep as they are."""
        from kaflow_engine.connectors.postgres.types import unfit

        return unfit(columns)

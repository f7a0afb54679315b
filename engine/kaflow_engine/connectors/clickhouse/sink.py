"""Tables of ClickHouse as a kind of sink: what they promise."""

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

_BOTH = "rows that replace each other count once where they are read with FINAL"
EXACTLY_ONCE = Capabilities(
    accepts=frozenset({"append", "upsert"}),
    commit="task",
    guarantee="exactly_once",
    reason="a ledger says which batches a table has, and the table drops a block whose token it "
    f"knows, which the start asks for; {_BOTH}; a batch becomes visible block by block",
    ordered=True,
    backfills=False,
    readable=True,
    listed_keys=True,
)
AT_LEAST_ONCE = replace(
    EXACTLY_ONCE,
    guarantee="at_least_once",
    reason="a table that knows no tokens of blocks takes those of a batch that was cut off twice; "
    f"{_BOTH}",
)


class ClickHouseTables:
    """Exactly once where the table knows blocks again, which only its server can tell."""

    @cached_property
    def outlet(self) -> Outlet | None:
        """What opens tables."""
        from kaflow_engine.connectors.clickhouse.outputs import ClickHouseOutlet  # it loads Arrow

        return ClickHouseOutlet()

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what a table promises."""
        return EXACTLY_ONCE if delivery == "exactly_once" else AT_LEAST_ONCE

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return columns that no table can keep as they are."""
        from kaflow_engine.connectors.clickhouse.types import unfit

        return unfit(columns, settings)

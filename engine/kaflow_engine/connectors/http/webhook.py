"""Webhooks as a kind of sink: what they promise."""

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
    guarantee="at_least_once",
    reason="a request whose answer was lost is sent again, with the same Idempotency-Key",
    ordered=True,
    backfills=False,
)


class Webhooks:
    """At least once: only the receiver can tell whether it has a request already."""

    @cached_property
    def outlet(self) -> Outlet | None:
        """What sends rows."""
        from kaflow_engine.connectors.http.webhook_rows import WebhookRows  # it loads Arrow
        from kaflow_engine.connectors.unheld import UnheldOutlet

        return UnheldOutlet(WebhookRows)

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what a webhook promises."""
        return CAPABILITIES

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return what is wrong with the column of operations; every row has a JSON form."""
        column = settings.get("op_column")
        if column is None:
            return ()
        if settings.get("envelope") != "metadata":
            return (Unfit(why="'op_column' is of an envelope", hint="add envelope: metadata"),)
        if column not in {each.name for each in columns}:
            return (Unfit(why=f"its rows have no column '{column}'", hint="correct op_column"),)
        return ()

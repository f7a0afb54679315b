"""Tables of PostgreSQL as a kind of sink: what they promise."""

import json
from collections.abc import Sequence
from functools import cached_property

from kaflow_engine.connectors.contract import (
    Capabilities,
    Delivery,
    Outlet,
    Settings,
    Unfit,
)
from kaflow_engine.connectors.postgres.capabilities import CAPABILITIES
from kaflow_engine.model.columns import Column


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

        known = {column.name for column in columns}
        missing = [
            Unfit(
                why=f"'{key}' names '{name}', and the rows have no such column",
                hint=f"select it, or name one of {', '.join(sorted(known))}",
            )
            for key in ("update_where", "adds")
            for name in json.loads(str(settings.get(key) or "{}"))
            if name not in known
        ]
        if (batch := settings.get("batch_column")) in known:
            why = f"the rows have a column '{batch}', and 'batch_column' makes one"
            missing.append(Unfit(why=why, hint="select it under another name"))
        return [*unfit(columns), *missing]

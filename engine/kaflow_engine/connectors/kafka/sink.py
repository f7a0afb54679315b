"""Kafka topics as a kind of sink: what they promise."""

from collections.abc import Sequence

from kaflow_engine.connectors.contract import (
    Capabilities,
    Delivery,
    Outlet,
    Settings,
    Unfit,
)
from kaflow_engine.model.columns import Column

_REASONS: dict[Delivery, str] = {
    "exactly_once": "consumers read with isolation.level=read_committed; rows of one batch on "
    "several partitions may become visible one after the other",
    "at_least_once": "after a failure, rows of the last batch may appear again",
}


class KafkaTopics:
    """Exactly once through transactions with markers, else at least once."""

    outlet: Outlet | None = None

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what a topic promises."""
        return Capabilities(
            accepts=frozenset({"append", "upsert"}),
            commit="task",
            guarantee=delivery,
            reason=_REASONS[delivery],
            ordered=True,
        )

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return nothing: the planner looks at the columns of topics itself."""
        return ()

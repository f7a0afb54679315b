"""Kafka topics as a kind of sink: what they promise, and what their errors call for."""

from kaflow_engine.connectors.contract import Capabilities, Delivery, Outage, Outlet

_REASONS: dict[Delivery, str] = {
    "exactly_once": "consumers read with isolation.level=read_committed; rows of one batch on "
    "several partitions may become visible one after the other",
    "at_least_once": "after a failure, rows of the last batch may appear again",
}


class KafkaTopics:
    """Exactly once through transactions with markers, else at least once."""

    outlet: Outlet | None = None

    def capabilities(self, delivery: Delivery) -> Capabilities:
        """Return what a topic promises."""
        return Capabilities(
            accepts=frozenset({"append", "upsert"}),
            commit="task",
            guarantee=delivery,
            reason=_REASONS[delivery],
            ordered=True,
        )

    def outage(self, error: BaseException) -> Outage | None:
        """Tell by its class what an error of a broker calls for."""
        from kaflow_engine.connectors.kafka import errors  # it loads the client

        if isinstance(error, errors.BrokerAway | errors.BrokerAwaySink):
            return "retry"
        if isinstance(error, errors.RowRefused):
            return "stop"
        refused = errors.LoginRefused | errors.LoginRefusedSink | errors.TransactionTimeoutRefused
        return "bad settings" if isinstance(error, refused) else None

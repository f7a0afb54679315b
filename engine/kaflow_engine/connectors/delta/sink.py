"""Delta tables as a kind of sink: what they promise, and what their errors call for."""

from functools import cached_property

from kaflow_engine.connectors.contract import Capabilities, Delivery, Outage, Outlet

CAPABILITIES = Capabilities(
    accepts=frozenset({"append"}),
    commit="driver",
    guarantee="exactly_once",
    reason="a batch is one commit, which carries its number",
    ordered=False,
)


class DeltaTables:
    """Exactly once, whatever the author asks for: a commit names its batch."""

    @cached_property
    def outlet(self) -> Outlet | None:
        """What opens tables."""
        from kaflow_engine.connectors.delta.outputs import DeltaOutlet  # it loads the library

        return DeltaOutlet()

    def capabilities(self, delivery: Delivery) -> Capabilities:
        """Return what a table promises."""
        return CAPABILITIES

    def outage(self, error: BaseException) -> Outage | None:
        """Tell by its class what an error of a table calls for."""
        from kaflow_engine.connectors.delta.errors import TableUnfit

        return "bad settings" if isinstance(error, TableUnfit) else None

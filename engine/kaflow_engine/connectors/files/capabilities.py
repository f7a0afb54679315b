"""What the sink of folders of files promises."""

from kaflow_engine.connectors.contract import Capabilities

CAPABILITIES = Capabilities(
    accepts=frozenset({"append"}),
    commit="driver",
    guarantee="exactly_once",
    reason="files are called by their state, batch and partition, and get their names when they "
    "are whole; those of one batch appear one after the other",
    ordered=False,
    backfills=False,
    readable=True,
)

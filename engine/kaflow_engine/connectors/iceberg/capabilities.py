"""What the sink of tables of Iceberg promises."""

from kaflow_engine.connectors.contract import Capabilities

CAPABILITIES = Capabilities(
    accepts=frozenset({"append", "upsert"}),
    commit="driver",
    guarantee="exactly_once",
    reason="a batch is one commit, which carries its number",
    ordered=True,
    backfills=False,
    readable=True,
)

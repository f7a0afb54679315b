"""What the sink of tables of Postgres promises."""

from kaflow_engine.connectors.contract import Capabilities

CAPABILITIES = Capabilities(
    accepts=frozenset({"append", "upsert"}),
    commit="task",
    guarantee="exactly_once",
    reason="rows and the number of their batch are one transaction; rows of one batch in several "
    "partitions may become visible one after the other",
    ordered=True,
    backfills=False,
    listed_keys=True,
    readable=True,
)

"""What the sink of tables of Delta promises."""

from kaflow_engine.connectors.contract import Capabilities

CAPABILITIES = Capabilities(
    accepts=frozenset({"append"}),
    commit="driver",
    guarantee="exactly_once",
    reason="a batch is one commit, which carries its number",
    ordered=False,
)

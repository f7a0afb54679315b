"""How running pipelines are: progress, verdict, and the port that serves them."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.telemetry.nodes import NodeAccount, accounts_of, slowest
    from kaflow_engine.telemetry.outlet import Outlet, open_outlet
    from kaflow_engine.telemetry.progress import PipelineSummary, Progress, RunSummary
    from kaflow_engine.telemetry.verdict import Verdict, judge
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "NodeAccount",
    "Outlet",
    "PipelineSummary",
    "Progress",
    "RunSummary",
    "Verdict",
    "accounts_of",
    "judge",
    "open_outlet",
    "slowest",
]

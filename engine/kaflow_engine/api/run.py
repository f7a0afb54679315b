"""Runs pipelines on Spark: streams, and backfills of a range of event time."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.plan.evolution.diff import change as accept_change
    from kaflow_engine.plan.planner.planned import PlannedPipeline
    from kaflow_engine.runtime.application import run_backfill, run_pipelines
    from kaflow_engine.runtime.planning.columns import resolve_columns
    from kaflow_engine.runtime.planning.prepare import Waiting, prepare
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "PlannedPipeline",
    "Waiting",
    "accept_change",
    "prepare",
    "resolve_columns",
    "run_backfill",
    "run_pipelines",
]

"""Runs pipelines on Spark, streams and backfills of a range of event time, and previews them."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.plan.evolution.diff import change as accept_change
    from kaflow_engine.plan.planner.planned import PlannedPipeline
    from kaflow_engine.preview.preview import Asked, preview
    from kaflow_engine.preview.rows import Shown, ShownLetter, ShownRow
    from kaflow_engine.preview.served import RunningPreviews
    from kaflow_engine.runtime.application import run_backfill, run_pipelines, start_java
    from kaflow_engine.runtime.planning.columns import resolve_columns
    from kaflow_engine.runtime.planning.prepare import Waiting, prepare
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "Asked",
    "PlannedPipeline",
    "RunningPreviews",
    "Shown",
    "ShownLetter",
    "ShownRow",
    "Waiting",
    "accept_change",
    "prepare",
    "preview",
    "resolve_columns",
    "run_backfill",
    "run_pipelines",
    "start_java",
]

"""Streaming SQL pipelines over Kafka: planned by sqlglot, computed by DuckDB, moved by Spark."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.api.checks import check_output
    from kaflow_engine.api.errors import KaflowError
    from kaflow_engine.api.plan import Backfill, explain
    from kaflow_engine.api.project import (
        Config,
        PipelineSpec,
        check_project,
        load_config,
        load_pipeline,
        load_project,
    )
    from kaflow_engine.api.run import prepare, run_backfill, run_pipelines
    from kaflow_engine.api.state import outlook_of
    from kaflow_engine.api.status import Progress, judge
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "Backfill",
    "Config",
    "KaflowError",
    "PipelineSpec",
    "Progress",
    "check_output",
    "check_project",
    "explain",
    "judge",
    "load_config",
    "load_pipeline",
    "load_project",
    "outlook_of",
    "prepare",
    "run_backfill",
    "run_pipelines",
]

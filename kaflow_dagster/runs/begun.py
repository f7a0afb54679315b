"""Runs of Dagster that have begun and not ended."""

import dagster as dg

BEGUN = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
)

"""Checks of what pipelines write, and of what streams count, as Dagster's asset checks."""

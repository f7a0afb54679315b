"""The engine in Dagster: translation only."""

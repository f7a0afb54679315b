"""Errors of Delta tables that trying again does not heal."""

from kaflow_engine.errors import SinkError


class TableUnfit(SinkError):
    """The table has other columns or partitions than the pipeline writes."""

"""Errors of Delta tables that trying again does not heal."""

from kaflow_engine.errors import SinkUnfit


class TableUnfit(SinkUnfit):
    """The table has other columns or partitions than the pipeline writes."""

"""Errors of folders that trying again does not heal."""

from kaflow_engine.errors import SinkUnfit


class FolderUnfit(SinkUnfit):
    """The folder is none, belongs to a table, or may not be written: someone must act."""

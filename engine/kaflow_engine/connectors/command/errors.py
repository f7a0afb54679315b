"""Errors of statements that run over rows, and what each calls for."""

from kaflow_engine.errors import SinkAway, SinkUnfit


class CommandAway(SinkAway):
    """A file cannot be opened or written now, or was changed at the same time: it may heal."""


class CommandUnfit(SinkUnfit):
    """A statement, or what it writes to, is not as it must be: someone must act."""

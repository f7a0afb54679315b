"""The context of log messages: pipeline, run and batch, and the span of that."""

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from kaflow_engine.telemetry.traces import SpanIds

SpanOf = Callable[[str, int, int], SpanIds]
"""Gives the span of a pipeline, a run and a batch."""


@dataclass(frozen=True, slots=True)
class Where:
    """What is being worked on."""

    pipeline: str
    run: int | None = None
    """Epoch of the run."""
    batch: int | None = None

    def __str__(self) -> str:
        parts = [f"run {self.run}"] if self.run is not None else []
        parts += [f"batch {self.batch}"] if self.batch is not None else []
        return " ".join([self.pipeline, *parts])


_WHERE: ContextVar[Where | None] = ContextVar("kaflow_where", default=None)


@contextmanager
def logging_of(pipeline: str, run: int | None = None, batch: int | None = None) -> Generator[None]:
    """Say what the messages of this thread belong to while the block runs."""
    token = _WHERE.set(Where(pipeline, run, batch))
    try:
        yield
    finally:
        _WHERE.reset(token)


class AddWhere(logging.Filter):
    """Adds the attribute `where`, a Where or None, to records that have none."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.where = _WHERE.get()
        return True


@contextmanager
def naming_spans(span_of: SpanOf) -> Generator[None]:
    """Let what the engine's handlers show of a batch have the attribute `span`, a SpanIds, while
    the block runs."""
    adding = _AddSpan(span_of)
    handlers = list(logging.getLogger("kaflow").handlers)
    for handler in handlers:
        handler.addFilter(adding)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(adding)


class _AddSpan(logging.Filter):
    def __init__(self, span_of: SpanOf) -> None:
        super().__init__()
        self._span_of = span_of

    def filter(self, record: logging.LogRecord) -> bool:
        where = _WHERE.get()
        if where is not None and where.run is not None and where.batch is not None:
            record.span = self._span_of(where.pipeline, where.run, where.batch)
        return True

"""The context of log messages: pipeline, run and batch."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


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

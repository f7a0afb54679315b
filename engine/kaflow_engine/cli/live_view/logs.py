"""Log handler: sends the engine's log messages to standard error, as the configuration asks."""

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime

import click

from kaflow_engine.masking import masked
from kaflow_engine.model.config import LoggingConfig
from kaflow_engine.telemetry.log_context import AddWhere, Where
from kaflow_engine.telemetry.traces import SpanIds

LOGGER = logging.getLogger("kaflow")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        return json.dumps(
            {
                "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "level": record.levelname.lower(),
                "logger": record.name,
                **_where(record),
                **_span(record),
                "message": masked("", record.getMessage()),
            },
            ensure_ascii=False,
        )


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        message = masked("", record.getMessage())
        where = getattr(record, "where", None)
        place = f" [{where}]" if where else ""
        return f"{moment:%H:%M:%S} {record.levelname.lower():7} {record.name}{place}: {message}"


def _where(record: logging.LogRecord) -> dict[str, object]:
    where: Where | None = getattr(record, "where", None)
    return {} if where is None else asdict(where)


def _span(record: logging.LogRecord) -> dict[str, object]:
    span: SpanIds | None = getattr(record, "span", None)
    return {} if span is None else asdict(span)


class _ToStderr(logging.Handler):
    # asks for standard error each time, because a live view puts itself between
    def emit(self, record: logging.LogRecord) -> None:
        click.echo(self.format(record), err=True)


@contextmanager
def log_messages(config: LoggingConfig) -> Generator[None]:
    """Show log messages while the block runs."""
    handler = _ToStderr()
    handler.addFilter(AddWhere())
    handler.setFormatter(_JsonLines() if config.format == "json" else _Text())
    before = LOGGER.level, LOGGER.propagate
    LOGGER.setLevel(config.level.upper())
    LOGGER.propagate = False
    LOGGER.addHandler(handler)
    others = {name: logging.getLogger(name).level for name in config.levels}
    for name, level in config.levels.items():
        logging.getLogger(name).setLevel(level.upper())
    try:
        yield
    finally:
        for name, known in others.items():
            logging.getLogger(name).setLevel(known)
        LOGGER.removeHandler(handler)
        LOGGER.level, LOGGER.propagate = before

"""Printing: tables, JSON, and the progress line of long work."""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import click

from kaflow_engine.errors import KaflowError
from kaflow_engine.masking import without_secrets

_EVERY_S = 2.0


@dataclass(frozen=True, slots=True)
class Clock:
    """Says on stderr what is done, behind the seconds since it was made."""

    began: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Print a line."""
        click.echo(f"[{time.monotonic() - self.began:5.1f} s] {without_secrets(text)}", err=True)


@dataclass(slots=True)
class Steps:
    """Says on stderr what is done, but nothing of work that is short, and not every step."""

    clock: Clock = field(default_factory=Clock)
    said: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        """Print a line, unless the last one is younger than two seconds."""
        now = time.monotonic()
        if now - self.said >= _EVERY_S:
            self.said = now
            self.clock.say(text)


def say_notices(notices: Iterable[KaflowError]) -> None:
    """Say on stderr what is doubtful, and no mistake."""
    for notice in notices:
        click.echo(f"notice: {notice}", err=True)


def print_json(value: object) -> None:
    """Print a value as JSON, in its own order; secrets that are known are masked."""
    click.echo(without_secrets(json.dumps(value, indent=2, ensure_ascii=False, default=str)))


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns as wide as their widest cell, the last one open."""
    for line in table_lines(rows):
        click.echo(without_secrets(line))


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay rows out in columns.

    >>> table_lines([("a", "bb"), ("long", "c")])
    ['a     bb', 'long  c']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]

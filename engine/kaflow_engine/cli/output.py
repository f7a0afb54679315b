"""Printing: tables and JSON, plain when nobody watches."""

import json
from collections.abc import Sequence

import click


def print_json(value: object) -> None:
    """Print a value as JSON, in its own order."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns as wide as their widest cell, the last one open."""
    for line in table_lines(rows):
        click.echo(line)


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

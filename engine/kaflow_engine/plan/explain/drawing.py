"""Boxes and arrows in plain text."""

from collections.abc import Iterable, Sequence
from textwrap import wrap

WIDTH = 98
"""Columns of a drawing."""


def box(title: str, lines: Iterable[str], width: int = WIDTH) -> list[str]:
    """Draw lines in a box; long ones are wrapped, with their own indentation kept.

    >>> box("a", ["one"], 12)
    ['╭─ a ──────╮', '│ one      │', '╰──────────╯']
    """
    inside = width - 4
    top = f"╭─ {_cut(title, inside - 2)} "
    body = [part for line in lines for part in _wrapped(line, inside)]
    return [
        top + "─" * (width - 1 - len(top)) + "╮",
        *(f"│ {line:<{inside}} │" for line in body),
        "╰" + "─" * (width - 2) + "╯",
    ]


def arrow(label: str = "", width: int = WIDTH) -> list[str]:
    """Draw an arrow down to the next box, with what happens on the way beside it."""
    texts = wrap(label, width - 10) or [""]
    shafts = [f"    │  {text}".rstrip() for text in texts]
    return [*shafts, "    ▼"]


def table(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lay out names and what is said of them; a name is not repeated in the next line.

    >>> table([("key", "user_id"), ("format", "json")])
    ['key     user_id', 'format  json']
    """
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}}  {text}".rstrip() for name, text in rows]


def wrapped(text: str, width: int = WIDTH) -> list[str]:
    """Wrap text outside of boxes, each of its lines on its own."""
    return [part for line in text.splitlines() for part in _wrapped(line, width)]


def _wrapped(line: str, width: int) -> list[str]:
    start = len(line) - len(line.lstrip())
    _, gap, rest = line[start:].partition("  ")
    # What stands in columns goes on under its own column.
    under = len(line) - len(rest.lstrip()) if gap else start + 2
    indent = " " * min(under, width // 2)
    return wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"

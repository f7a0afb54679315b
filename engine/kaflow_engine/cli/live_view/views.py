"""Shows running pipelines: a live table on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kaflow_engine.cli.live_view.board import Board, Line

PLAIN_SECONDS = 5.0
"""Time between two reports in plain lines."""

_COLOURS = {"running": "green", "degraded": "yellow", "failed": "red", "stopped": "dim"}


class View(Protocol):
    """Something that shows a board again and again."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def refresh(self, board: Board) -> None:
        """Show how things are now; called several times per second."""
        ...

    def say(self, text: str) -> None:
        """Print one line that stays."""
        ...


def choose_view(plain: bool) -> View:
    """Return the live view on a terminal, plain lines where no one watches or `plain` is asked."""
    return PlainView() if plain or not sys.stdout.isatty() else LiveView(Console())


class LiveView:
    """A table that is drawn over itself."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def refresh(self, board: Board) -> None:
        board.changes.clear()  # the table shows the states
        self._live.update(_drawing(board), refresh=True)

    def say(self, text: str) -> None:
        self._console.print(Text(text, style="dim"))


class PlainView:
    """A few lines every few seconds, on standard error."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._next = self._began + PLAIN_SECONDS
        self._said: dict[str, str] = {}
        self._shown: tuple[str, str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def refresh(self, board: Board) -> None:
        while board.changes:
            self.say(board.changes.popleft())
        if self._shown is None:
            self._row(board, "first row")
        lines = board.lines()
        now = self._clock()
        if now < self._next:
            return
        self._next = now + PLAIN_SECONDS
        if all(line.batch == 0 for line in lines):
            self.say(f"no batch yet, {now - self._began:.0f} s so far")
            return
        for line in lines:
            text = plain_line(line)
            if self._said.get(line.pipeline) != text:  # what stands still is shown once
                self._said[line.pipeline] = text
                self.say(text)
        self._row(board, "latest row")

    def say(self, text: str) -> None:
        click.echo(text, err=True)

    def _row(self, board: Board, what: str) -> None:
        if board.last_row is not None and board.last_row != self._shown:
            self._shown = board.last_row
            self.say(f"{what} of {self._shown[0]}: {self._shown[1]}")


def plain_line(line: Line) -> str:
    """Return one pipeline as one line."""
    parts = [
        f"{line.pipeline}: {line.state}",
        f"batch {line.batch}",
        f"in {line.records_in:.0f}/s",
        f"out {line.rows_out:.0f}/s",
        f"lag {line.lag}",
        f"waiting {line.waiting}",
        f"dead letters {line.dead_letters}",
        f"watermark {line.watermark}",
        line.verdict,
    ]
    return ", ".join(parts)


def _drawing(board: Board) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("pipeline", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for name in ("batch", "in/s", "out/s", "lag", "waiting", "dead letters"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("watermark (UTC)", no_wrap=True)
    table.add_column("why", no_wrap=True)
    lines = board.lines()
    for line in lines:
        table.add_row(
            line.pipeline,
            Text(line.state, style=_COLOURS.get(line.state, "cyan")),
            f"{line.batch}",
            f"{line.records_in:,.0f}",
            f"{line.rows_out:,.0f}",
            f"{line.lag:,}",
            f"{line.waiting:,}",
            f"{line.dead_letters:,}",
            line.watermark,
            line.verdict,
        )
    parts: list[RenderableType] = [table]
    parts += [
        Text(f"{line.pipeline}: {_first_line(line.error)}", style="red")
        for line in lines
        if line.error
    ]
    rows = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    rows.add_column("topic", no_wrap=True)
    rows.add_column("latest rows", no_wrap=True, overflow="ellipsis", ratio=1)
    for topic, texts in sorted(board.rows.copy().items()):
        for text in texts:
            rows.add_row(Text(topic, style="dim"), Text(text))
    parts += [Text(), rows, Text("Ctrl-C finishes the batch that runs and stops.", style="dim")]
    return Group(*parts)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]

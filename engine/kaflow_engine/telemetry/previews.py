"""Previews at the port: what may be asked for, and rows as server-sent events."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal, Protocol
from urllib.parse import parse_qsl

from kaflow_engine.errors import UnknownName
from kaflow_engine.masking import without_secrets

EVENTS = "text/event-stream; charset=utf-8"
MOST_SECONDS = 600.0
MOST_ROWS = 100_000
_ROWS = 1_000
_SECONDS = 60.0
_KEYS = ("pipeline", "node", "seconds", "rows", "from")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be shown."""

    pipeline: str
    node: str | None = None
    """None: all."""
    seconds: float = _SECONDS
    rows: int = _ROWS
    since: Literal["latest", "earliest"] = "latest"


@dataclass(frozen=True, slots=True)
class Mistake:
    """Why it is not."""

    code: HTTPStatus
    message: str
    hint: str | None = None


class Lines(Protocol):
    """The lines of a preview, which begins when they are iterated."""

    def __iter__(self) -> Iterator[str]:
        """Yield JSON objects as they come: rows, dead letters, and `error`, which is the last."""
        ...

    def close(self) -> None:
        """End the preview, from any thread."""
        ...


class Previews(Protocol):
    """Shows the rows of pipelines."""

    @property
    def nodes(self) -> Mapping[str, Sequence[str]]:
        """The nodes of each pipeline."""
        ...

    def lines(self, wanted: Wanted) -> Lines:
        """Return a preview."""
        ...


@dataclass(frozen=True, slots=True)
class RowEvents:
    """A preview as server-sent events: one for each line, and `end` or `error` behind them."""

    lines: Lines
    kind: str = EVENTS

    def __iter__(self) -> Iterator[bytes]:
        """Yield events."""
        count = 0
        yield b": rows follow\n\n"  # so that who asks knows at once that it was begun
        for line in self.lines:
            if line.startswith('{"error"'):
                yield _event(line, "error")
                return
            count += 1
            yield _event(line)
        yield _event(json.dumps({"rows": count}), "end")

    def close(self) -> None:
        """End it."""
        self.lines.close()


def wanted_of(path: str, previews: Previews) -> Wanted | Mistake:
    """Read what a path such as `/preview?pipeline=orders&rows=10` asks for."""
    said = dict(parse_qsl(path.partition("?")[2]))
    try:
        for key in said:
            if key not in _KEYS:
                raise UnknownName("parameter", key, _KEYS)
        if "pipeline" not in said and len(previews.nodes) == 1:
            said["pipeline"] = next(iter(previews.nodes))
        name, node = said.get("pipeline", ""), said.get("node")
        if name not in previews.nodes:
            raise UnknownName("pipeline", name, [*previews.nodes])
        if node is not None and node not in previews.nodes[name]:
            raise UnknownName("node", node, previews.nodes[name])
    except UnknownName as error:
        return Mistake(HTTPStatus.NOT_FOUND, error.message, error.hint)
    try:
        seconds, rows = float(said.get("seconds", _SECONDS)), int(said.get("rows", _ROWS))
    except ValueError:
        return _refused("seconds and rows are numbers")
    since = said.get("from", "latest")
    if not 0 < seconds <= MOST_SECONDS or not 0 < rows <= MOST_ROWS:
        return _refused(f"at most {MOST_SECONDS:g} seconds and {MOST_ROWS} rows, and some of both")
    if since not in ("latest", "earliest"):
        return _refused("from is latest or earliest")
    return Wanted(pipeline=name, node=node, seconds=seconds, rows=rows, since=since)


def _refused(message: str) -> Mistake:
    return Mistake(HTTPStatus.BAD_REQUEST, message)


def _event(line: str, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {without_secrets(line)}\n\n".encode()

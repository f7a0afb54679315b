"""Writes down what sources give that cannot be read twice: those of plugins, and of PySpark."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from typing import Any, cast

from kaflow_engine.connectors.journal.folder import ended_by, mark_ended
from kaflow_engine.connectors.journal.journal import Message
from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.connectors.journal.sessions import Line, in_threads
from kaflow_engine.connectors.plugin_sources.kind import opened
from kaflow_engine.connectors.plugin_sources.values import value_of
from kaflow_engine.connectors.sources.plugin_contract import JournalledSource, Piece
from kaflow_engine.plugins.raised import OF_SOURCES, plugin_errors

AGAIN_S = 1.0
"""Before a source is read again that has returned."""

Open = Callable[[Inlet], JournalledSource]


class PluginRows:
    """Takes rows of plugins; each source has a thread."""

    def receiving(self, inlets: Sequence[Inlet]) -> AbstractContextManager[None]:
        """Take rows to the end of the block."""
        return in_threads(inlets, take_plugin)


def take_plugin(line: Line) -> None:
    """Take what the plugin of a source gives, until it ends or returns; see `take`."""
    params = line.inlet.params
    take(line, f"plugin '{params.type}'", params.type, _open_plugin)


def take(line: Line, called: str, kind: str, opening: Open) -> None:
    """Take what a source gives, until it ends or returns.

    Args:
        line: Where to.
        called: The source, as errors name it.
        kind: Whose positions they are.
        opening: Opens it.

    Raises:
        SourceAway: It may heal.
        SourceUnfit: Someone must act.
        StateError: Rows could not be written down.
    """
    journal = line.inlet.journal
    if line.inlet.params.bounded and ended_by(journal.folder) == kind:
        while not line.ends:
            line.pause(AGAIN_S)
        return
    mark_ended(journal.folder, None)  # it was of another kind
    if not line.await_room():
        return
    with plugin_errors(OF_SOURCES, called):
        source = opening(line.inlet)
        with closing(cast(Any, source.read(position(journal.note, kind)))) as pieces:
            for piece in pieces:
                _write(line, piece, called, kind)
                if not line.await_room():
                    return
    if line.inlet.params.bounded:
        mark_ended(journal.folder, kind)
    else:
        line.patience.worked()
        line.pause(AGAIN_S)


def position(note: bytes | None, kind: str) -> Any:
    """Return where a kind of source goes on; None: at its beginning, or another one was here."""
    said: dict[str, Any] = {} if note is None else json.loads(note)
    return said.get("position") if said.get("of") == kind else None


def _write(line: Line, piece: Piece, called: str, kind: str) -> None:
    if not piece.rows:
        line.patience.worked()
        return
    messages = [Message(value=value_of(row, called)) for row in piece.rows]
    line.write(messages, json.dumps({"of": kind, "position": piece.position}).encode())


def _open_plugin(inlet: Inlet) -> JournalledSource:
    found: JournalledSource = opened(
        inlet.params,
        inlet.name,
        inlet.settings,
        inlet.journal.folder,
        inlet.measures,
        inlet.journal,
    )
    return found

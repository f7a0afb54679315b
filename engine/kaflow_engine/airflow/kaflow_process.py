"""A `kaflow` command as a process of its own, whose lines are passed on as they come."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

from kaflow_engine.errors import ModelError

_LAST = 20
"""Lines of an error that are kept for whoever reads only how the task ended."""
_LOOK_S = 0.1
"""How often to look whether the command has closed its streams, while it prints nothing."""
_BEGINS = ("{", "[", "{}", "[]")
"""The first lines of values as commands print them; a row of a console output is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command has ended, and what it printed."""

    code: int
    """The exit code; below 0 it is the signal that killed it."""
    error: str
    """What it said about what went wrong; empty: nothing."""
    found: Any
    """What it printed with `--json`; None: nothing."""


class Command:
    """A command that runs; `stop` may be called from a handler of a signal."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Start it.

        Raises:
            ModelError: The folder or the program is not there.
        """
        if not folder.is_dir():
            raise ModelError(
                f"there is no folder '{folder}' where this task runs",
                hint="'project' is a folder on each worker of Airflow that may get the task",
            )
        try:
            self._process = subprocess.Popen(
                words,
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                # A signal to all processes of the task would end it in the middle of a batch.
                start_new_session=True,
            )
        except OSError as error:
            raise ModelError(
                f"'{words[0]}' cannot be started: {error.strerror}", hint=_OTHER
            ) from error

    def follow(self, say: Callable[[str], None], *, as_json: bool) -> CommandResult:
        """Pass on each line that it prints, until it has ended.

        Whatever is raised meanwhile, by a handler of a signal, asks it to end, and is raised when
        it has: until then its state is held.

        Args:
            say: Gets the lines.
            as_json: Whether its standard output ends with a value, which is not passed on.
        """
        raised: BaseException | None = None
        lines: SimpleQueue[tuple[bool, str]] = SimpleQueue()
        readers = [
            Thread(target=_read, args=(stream, is_error, lines.put), daemon=True)
            for stream, is_error in ((self._process.stdout, False), (self._process.stderr, True))
        ]
        for reader in readers:
            reader.start()
        value: list[str] = []
        errors: deque[str] = deque(maxlen=_LAST)

        def take(is_error: bool, line: str) -> None:
            if as_json and not is_error and (value or line in _BEGINS):
                value.append(line)
                return
            say(line)
            if is_error and (errors or line.lower().startswith("error: ")):
                errors.append(line)

        while True:
            try:
                _pass_on(lines, readers, take)
                code = self._process.wait()
                break
            except BaseException as error:
                raised = raised or error
                self.stop()
        if raised is not None:
            raise raised
        return CommandResult(
            code=code, error="\n".join(errors), found=_value("\n".join(value), say)
        )

    def stop(self) -> None:
        """Ask it to end: it finishes the batch that runs."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)


def program(named: str | None) -> str:
    """Return the `kaflow` of this Python's environment, else the first one of the path.

    Args:
        named: What the author says; it goes over both.

    Raises:
        ModelError: There is none.
    """
    if named is not None:
        return named
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    found = shutil.which("kaflow", path=places)
    if found is None:
        raise ModelError("there is no command 'kaflow' in the environment of Airflow", hint=_OTHER)
    return found


_OTHER = 'name the command of the environment that has it: kaflow="/opt/kaflow/bin/kaflow"'


def _pass_on(
    lines: SimpleQueue[tuple[bool, str]],
    readers: Sequence[Thread],
    take: Callable[[bool, str], None],
) -> None:
    """Hand over lines until all streams are closed; it may begin again after an interruption."""
    while any(reader.is_alive() for reader in readers) or not lines.empty():
        with suppress(Empty):
            take(*lines.get(timeout=_LOOK_S))


def _read(stream: IO[str], is_error: bool, put: Callable[[tuple[bool, str]], None]) -> None:
    with stream:
        for line in stream:
            if text := line.rstrip():
                put((is_error, text))


def _value(text: str, say: Callable[[str], None]) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        say(text)
        return None

"""Receivers that go and get what they write down: each source has a thread, and sessions in it."""

import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kaflow_engine.connectors.journal.journal import Message
from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.errors import KaflowError, SourceAway, SourceError, StateError
from kaflow_engine.masking import masked

LOGGER = logging.getLogger("kaflow.receiver")

FIRST_PAUSE_S = 0.5
_MOST_PAUSE_S = 30.0
_FULL_S = 0.1
"""How often to look whether the pipeline has read on."""
_LEAVES_S = 10.0
"""How long all may take to end."""


class ReceiverEnded(SourceError):
    """What gives records was away for too long, or nothing could be written down."""

    outage = "stop"


class AskedToWait(SourceAway):
    """A server says itself when it wants to be asked again."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(kw_only=True)
class Patience:
    """Pauses after failures in a row: each is twice as long as the one before.

    >>> patience = Patience(seconds=4, clock=lambda: 0)
    >>> [patience.pause() for _ in range(4)]
    [0.5, 1.0, 2.0, None]
    """

    seconds: float
    """How long failures may go on."""
    clock: Callable[[], float] = time.monotonic
    _since: float | None = None
    _failures: int = 0

    def pause(self, asked: float = 0.0) -> float | None:
        """Return the seconds until the next try; None: there is none.

        Args:
            asked: What the other side wants to be left alone for, however long that is.
        """
        now = self.clock()
        self._since = now if self._since is None else self._since
        pause = min(FIRST_PAUSE_S * 2 ** min(self._failures, 10), _MOST_PAUSE_S)
        self._failures += 1
        if asked > pause and now - self._since < self.seconds:
            return asked
        return None if now - self._since + pause >= self.seconds else pause

    def worked(self) -> None:
        """Begin to count again."""
        self._since, self._failures = None, 0


@dataclass(frozen=True, kw_only=True)
class Line:
    """What the sessions of a source work with."""

    inlet: Inlet
    patience: Patience
    _stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def ends(self) -> bool:
        """Whether no more is to be taken."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Take no more."""
        self._stopped.set()

    def pause(self, seconds: float) -> None:
        """Wait, unless it ends."""
        self._stopped.wait(seconds)

    def await_room(self) -> bool:
        """Return once the journal takes more, or False when it ends."""
        if not self.ends and self.inlet.is_full:
            self.inlet.count("receiver_full")
        while not self.ends and self.inlet.is_full:
            self.pause(_FULL_S)
        return not self.ends

    def write(self, messages: Sequence[Message], note: bytes | None = None) -> None:
        """Return when messages survive a power cut, all or none of them.

        Args:
            messages: At least one.
            note: What is known once they are there.

        Raises:
            StateError: They cannot be written.
        """
        self.inlet.journal.append(messages, round(time.time() * 1000), note)
        self.patience.worked()

    def write_at_last(self, messages: Sequence[Message]) -> None:
        """Write messages that are not sent again, also where the disk has no room at first.

        Raises:
            StateError: They could not be written for too long, or until it ends.
        """
        while True:
            try:
                return self.write(messages)
            except StateError as error:
                if self.ends or not self.has_paused(error):
                    raise

    def has_paused(self, error: SourceAway | StateError) -> bool:
        """Wait until something may be tried again, and log why; False: it failed for too long."""
        self.inlet.count("receiver_failures")
        asked = error.seconds if isinstance(error, AskedToWait) else 0.0
        pause = self.patience.pause(asked)
        if pause is None:
            return False
        if not self.ends:
            said, name = masked("", error.message), self.inlet.name
            LOGGER.warning("source '%s': %s; tried again in %g s", name, said, pause)
        self.pause(pause)
        return True


Session = Callable[[Line], None]
"""Takes what comes until it ends. `SourceAway` and `StateError` call for another session after a
pause; what else it raises cannot heal."""


@contextmanager
def in_threads(inlets: Sequence[Inlet], session: Session) -> Generator[None]:
    """Run sessions of sources, one after the other, to the end of the block.

    There all are asked to stop before one is waited for: the slowest says how long it takes.
    """
    lines = [Line(inlet=each, patience=Patience(seconds=each.patience)) for each in inlets]
    threads = [
        threading.Thread(
            target=_run,
            args=(line, session),
            name=f"kaflow-receives-{line.inlet.name}",
            daemon=True,
        )
        for line in lines
    ]
    try:
        for thread in threads:
            thread.start()
        yield
    finally:
        for line in lines:
            line.stop()
        deadline = time.monotonic() + _LEAVES_S
        for thread in threads:
            if thread.is_alive():  # and was started at all
                thread.join(max(0.0, deadline - time.monotonic()))


def _run(line: Line, session: Session) -> None:
    name = line.inlet.name
    while not line.ends:
        try:
            session(line)
        except (SourceAway, StateError) as error:
            if not line.ends and not line.has_paused(error):
                line.inlet.journal.fail(_ended(line.inlet, error))
                return
        except KaflowError as error:
            line.inlet.journal.fail(error)
            return
        except Exception as error:
            LOGGER.debug("source '%s'", name, exc_info=True)
            kind = type(error).__name__
            line.inlet.journal.fail(ReceiverEnded(f"source '{name}' failed: {kind}: {error}"))
            return


def _ended(inlet: Inlet, error: KaflowError) -> ReceiverEnded:
    return ReceiverEnded(
        f"source '{inlet.name}' gave nothing for {inlet.patience:g} s: {error.message}",
        hint=error.hint or "start the pipeline again when it is back, or raise 'retry_deadline'",
    )

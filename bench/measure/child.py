"""A process that is measured."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kaflow_engine.errors import RunError

ROOT = Path(__file__).parent.parent.parent


@dataclass(slots=True, kw_only=True)
class Child:
    """A process with a folder and a log of its own; leaving the block ends it."""

    folder: Path
    """Is its own alone."""
    name: str
    """As errors call it."""
    began: float = 0.0
    """Epoch seconds at which the process was started."""
    _child: "subprocess.Popen[bytes] | None" = None

    def __exit__(self, *about: object) -> None:
        self.stop()

    def start(self, command: Sequence[str]) -> None:
        """Start it; what it says goes to its log."""
        self.began = time.time()
        with (self.folder / "run.log").open("ab") as log:
            # a session of its own: Ctrl-C is for us, and we pass it on
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment(),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The driver's process."""
        assert self._child is not None
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._child is not None and self._child.poll() is None

    def wait(self, seconds: float) -> None:
        """Wait until it ends by itself.

        Raises:
            RunError: It failed, or takes too long.
        """
        assert self._child is not None
        try:
            code = self._child.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise RunError(
                f"{self.name} did not end in {seconds:g} s", hint=self.words()
            ) from error
        if code:
            raise RunError(f"{self.name} ended with {code}", hint=self.words())

    def until(
        self, holds: Callable[[], bool], seconds: float = 240.0, what: str = "what it must do"
    ) -> None:
        """Wait until something holds.

        Args:
            holds: Looked at again and again.
            seconds: How long, at most.
            what: Is waited for, as errors say it.

        Raises:
            RunError: It ended before, or it takes too long.
        """
        deadline = time.monotonic() + seconds
        while not holds():
            if not self.running:
                raise RunError(f"{self.name} ended before {what} came", hint=self.words())
            if time.monotonic() > deadline:
                raise RunError(f"{what} did not come in {seconds:g} s", hint=self.words())
            time.sleep(0.05)

    def stop(self, seconds: float = 90.0) -> None:
        """Ask it to end, and end it with all its processes when it does not."""
        if self._child is None:
            return
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)  # its JVM, if it is still there
        self._child.wait()

    def words(self) -> str:
        """Return the end of its log."""
        log = self.folder / "run.log"
        return "\n        ".join(log.read_text(errors="replace").splitlines()[-12:])


def environment() -> dict[str, str]:
    """Return the environment of processes that import this project."""
    paths = [str(ROOT / "engine"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}

"""A server that runs beside this process and never outlives it."""

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from kaflow_engine.errors import RunError

# The parent holds the other end of descriptor 3, which closes when the parent is gone, however
# it went. Unlike Linux's death signal this does not depend on the thread that started the server.
_KEEPER = """
exec 3<&0 4>&1 >&2
"$@" 3<&- 4>&- </dev/null &
server=$!
echo $server >&4
exec 4>&-
(read -r _ <&3; kill $server) 2>/dev/null &
keeper=$!
wait $server
code=$?
kill $keeper
exit $code
"""

# below the ports that systems give to outgoing connections, which could take one before the
# server does
_PORTS = (20_000, 32_000)


class Child:
    """A running server, in a session of its own.

    Ctrl-C reaches the parent only, so that it can drain before it stops the server.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        """Start `command`; what it prints is appended to the file `log`."""
        self._log = log
        with log.open("ab") as output:
            self._keeper = subprocess.Popen(
                ["/bin/sh", "-c", _KEEPER, "sh", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        assert self._keeper.stdout is not None
        with self._keeper.stdout as answer:
            self.pid = int(answer.readline())
            """The server's own process."""

    @property
    def running(self) -> bool:
        """Whether the server has not ended."""
        return self._keeper.poll() is None

    def wait_until(self, ready: Callable[[], bool], what: str, seconds: float) -> None:
        """Return when `ready()` holds.

        Raises:
            RunError: the server ended, or the time is up; shows the end of its log.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running:
                self._close()
                raise RunError(f"{what} ended while starting", hint=self.last_words())
            if time.monotonic() > deadline:
                raise RunError(f"{what} did not start in {seconds:g} s", hint=self.last_words())
            time.sleep(0.02)

    def stop(self, seconds: float = 15.0) -> None:
        """Ask the server to end, and end it when it has not done so in time."""
        self._signal(signal.SIGTERM)
        try:
            self._keeper.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close()

    def kill(self) -> None:
        """End the server at once, as a crash would."""
        self._signal(signal.SIGKILL)
        self._keeper.wait()
        self._close()

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            with suppress(ProcessLookupError):  # it ended, and its keeper is about to
                os.kill(self.pid, number)

    def _close(self) -> None:
        if self._keeper.stdin:
            self._keeper.stdin.close()

    def last_words(self) -> str:
        """Return the end of its log, as a hint."""
        lines = self._log.read_text(errors="replace").splitlines()[-8:]
        return "\n        ".join([f"the end of {self._log}:", *lines])


def free_ports(count: int) -> list[int]:
    """Return ports on 127.0.0.1 that nothing listens on at this moment."""
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(*_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def listening(port: int) -> bool:
    """Say whether something accepts connections on a port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0

"""What servers have in common that keep data of their own."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from kaflow_engine.testing.services.child import Child, free_ports, listening


class KeptServer(ABC):
    """A server on 127.0.0.1; ends with this process at the latest.

    Its data stay while it is stopped, and go when it is closed.
    """

    def __init__(self) -> None:
        self.port = free_ports(1)[0]
        self._child: Child | None = None
        self._scratch: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    @property
    def running(self) -> bool:
        """Whether the server has been started and has not ended."""
        return self._child is not None and self._child.running

    @abstractmethod
    def start(self) -> None:
        """Start the server, with the data that it had, and return when it takes connections.

        Raises:
            RunError: There is no server program here, or it did not come up.
        """

    def stop(self) -> None:
        """Stop the server; connections end."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def _folder(self, new: Callable[[], "TemporaryDirectory[str]"]) -> Path:
        """Return the folder of its data, which `new` makes at the first start."""
        if self._scratch is None:
            self._scratch = new()
        return Path(self._scratch.name)

    def _run(self, command: Sequence[str], folder: Path, what: str, seconds: float) -> None:
        """Start a program that logs into a folder, and wait for it."""
        self._child = Child(command, folder / "server.log")
        self._child.wait_until(self._answers, what, seconds)

    def _answers(self) -> bool:
        return listening(self.port)

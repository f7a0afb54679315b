"""A real broker of MQTT on this machine, from the programs that are installed here."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from kaflow_engine.errors import RunError
from kaflow_engine.testing.services.child import Child, free_ports, listening

START_SECONDS = 30.0
USER = "kaflow"
PASSWORD = "pass-word:of/tests"


class Mosquitto:
    """A broker on 127.0.0.1 with one user; ends with this process at the latest.

    What it keeps for clients stays while it is stopped, and goes when it is closed.

    Args:
        settings: More lines of its configuration, such as those of TLS.
    """

    def __init__(self, settings: Sequence[str] = ()) -> None:
        self.port = free_ports(1)[0]
        self._settings = settings
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

    def start(self) -> None:
        """Start the broker, with what it kept, and return when it takes connections.

        Raises:
            RunError: There is no broker here, or it did not come up.
        """
        program = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin") or shutil.which(
            "mosquitto"
        )
        if program is None:
            raise RunError("there is no Mosquitto here", hint="install mosquitto")
        if self._scratch is None:
            self._scratch = self._configured()
        folder = Path(self._scratch.name)
        command = [program, "-c", str(folder / "mosquitto.conf")]
        self._child = Child(command, folder / "server.log")
        self._child.wait_until(lambda: listening(self.port), "Mosquitto", START_SECONDS)

    def stop(self) -> None:
        """Stop the broker; it writes down what it keeps."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def _configured(self) -> "TemporaryDirectory[str]":
        scratch: TemporaryDirectory[str] = TemporaryDirectory(prefix="kaflow-mosquitto-")
        folder = Path(scratch.name)
        passwords = folder / "passwords"
        passwords.touch(0o600)
        made = ["mosquitto_passwd", "-b", str(passwords), USER, PASSWORD]
        subprocess.run(made, check=True, capture_output=True)
        lines = [
            f"listener {self.port} 127.0.0.1",
            "user root",
            "persistence true",
            f"persistence_location {folder}/",
            f"password_file {passwords}",
            "allow_anonymous false",
            "max_queued_messages 0",
            *self._settings,
        ]
        (folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        return scratch

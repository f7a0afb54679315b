"""A real broker of MQTT on this machine, from the programs that are installed here."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kaflow_engine.errors import RunError
from kaflow_engine.testing.services.kept_server import KeptServer

START_SECONDS = 30.0
USER = "kaflow"
PASSWORD = "pass-word:of/tests"


class Mosquitto(KeptServer):
    """A broker with one user; its data are what it keeps for clients.

    Args:
        settings: More lines of its configuration, such as those of TLS.
    """

    def __init__(self, settings: Sequence[str] = ()) -> None:
        super().__init__()
        self._settings = settings

    def start(self) -> None:
        """Start the broker."""
        program = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin") or shutil.which(
            "mosquitto"
        )
        if program is None:
            raise RunError("there is no Mosquitto here", hint="install mosquitto")
        folder = self._folder(self._configured)
        command = [program, "-c", str(folder / "mosquitto.conf")]
        self._run(command, folder, "Mosquitto", START_SECONDS)

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

"""A real PostgreSQL server on this machine, from the programs that are installed here."""

import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from kaflow_engine.errors import RunError
from kaflow_engine.testing.services.kept_server import KeptServer

START_SECONDS = 60.0
USER = "kaflow"
PASSWORD = "pass-word:of/tests"  # one that a URL must quote
_FOLDERS = "/usr/lib/postgresql/*/bin"


class PostgresServer(KeptServer):
    """A server with a database `kaflow`."""

    @property
    def url(self) -> str:
        """What clients are given as its address."""
        return self.url_of(USER, PASSWORD)

    def url_of(self, user: str, password: str) -> str:
        """Return the address for a user."""
        return self._url(user, password, "postgres")

    def url_in(self, database: str) -> str:
        """Return the address of a database."""
        return self._url(USER, PASSWORD, database)

    def last_words(self) -> str:
        """Return the end of its log, as hints show it."""
        return self._child.last_words() if self._child is not None else ""

    def start(self) -> None:
        """Start the server, unless it runs."""
        if self.running:
            return
        programs = server_programs()
        if programs is None:
            raise RunError("there is no PostgreSQL server here", hint="install postgresql")
        folder = self._folder(lambda: _new_data(programs))
        options = ["-p", str(self.port), "-h", "127.0.0.1", "-k", str(folder), "-F"]
        command = [*_as_user(), str(programs / "postgres"), "-D", str(folder / "data"), *options]
        self._run(command, folder, "PostgreSQL", START_SECONDS)

    def stop(self) -> None:
        """Stop the server; connections end."""
        if self._child is not None and self._child.running:
            os.kill(self._child.pid, signal.SIGINT)  # without waiting for its clients
        super().stop()

    def kill(self) -> None:
        """End the server at once, as a crash would."""
        if self._child is not None:
            os.kill(self._child.pid, signal.SIGQUIT)  # its own processes end with it
        super().stop()

    def _url(self, user: str, password: str, database: str) -> str:
        return f"postgresql://{user}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def _answers(self) -> bool:
        import psycopg  # an optional dependency

        if not super()._answers():
            return False
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def server_programs() -> Path | None:
    """Return the folder with the programs of the newest server that is installed; None: none is."""
    root, pattern = Path("/"), _FOLDERS[1:]
    found = [folder for folder in sorted(root.glob(pattern)) if (folder / "initdb").exists()]
    if found:
        return found[-1]
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


def _new_data(programs: Path) -> "TemporaryDirectory[str]":
    scratch: TemporaryDirectory[str] = TemporaryDirectory(prefix="kaflow-postgres-")
    folder = Path(scratch.name)
    (folder / "password").write_text(PASSWORD)
    if _as_user():
        owner = pwd.getpwnam("postgres")
        for path in (folder, folder / "password"):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    made = subprocess.run(
        [
            *_as_user(),
            str(programs / "initdb"),
            *("-D", str(folder / "data"), "-U", USER, "-A", "scram-sha-256", "-E", "UTF8"),
            *("--locale=C", "-N", f"--pwfile={folder / 'password'}"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    if made.returncode:
        scratch.cleanup()
        raise RunError("initdb failed", hint=made.stderr.strip()[-500:])
    return scratch


def _as_user() -> list[str]:
    """Return what runs a program as another user: the server refuses to run as root."""
    if os.geteuid() != 0:
        return []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]

"""A real MariaDB server on this machine, from the programs that are installed here."""

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from kaflow_engine.errors import RunError
from kaflow_engine.testing.services.kept_server import KeptServer

START_SECONDS = 60.0
USER = "kaflow"
PASSWORD = "pass-word:of/tests"  # one that a URL must quote
_SYSTEM_TABLES = Path("/usr/share/mysql")
_SYSTEM = ("system_tables", "system_tables_data")
"""What makes the tables in which a server keeps its users, by the ends of the files' names."""
_FAST = (
    *("--skip-log-bin", "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M"),
    "--innodb-flush-log-at-trx-commit=0",
)


class MariaDBServer(KeptServer):
    """A server with a database `kaflow`."""

    @property
    def url(self) -> str:
        """What clients are given as its address."""
        return f"mysql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{self.port}/kaflow"

    def start(self) -> None:
        """Start the server."""
        program = server_program()
        if program is None:
            raise RunError("there is no MariaDB server here", hint="install mariadb-server-core")
        folder = self._folder(lambda: _new_data(program))
        command = [
            *_command(program, folder),
            *(f"--port={self.port}", "--bind-address=127.0.0.1", "--skip-name-resolve"),
            *(f"--socket={folder / 'socket'}", f"--init-file={folder / 'users.sql'}"),
        ]
        self._run(command, folder, "MariaDB", START_SECONDS)


def server_program() -> str | None:
    """Return the server that is installed here; None: none is."""
    path = f"/usr/sbin:/usr/local/sbin:{os.environ.get('PATH', os.defpath)}"
    return shutil.which("mariadbd", path=path)


def _command(program: str, folder: Path) -> list[str]:
    as_root = ["--user=root"] if os.geteuid() == 0 else []
    return [program, "--no-defaults", f"--datadir={folder / 'data'}", *_FAST, *as_root]


def _new_data(program: str) -> "TemporaryDirectory[str]":
    scratch: TemporaryDirectory[str] = TemporaryDirectory(prefix="kaflow-mariadb-")
    folder = Path(scratch.name)
    (folder / "data").mkdir()
    (folder / "users.sql").write_text(
        f"CREATE OR REPLACE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
        f"GRANT ALL ON *.* TO {USER}@'127.0.0.1' WITH GRANT OPTION;\n"
        "CREATE DATABASE IF NOT EXISTS kaflow CHARACTER SET utf8mb4;\n"
    )
    files = [next(iter(_SYSTEM_TABLES.glob(f"m*_{name}.sql")), None) for name in _SYSTEM]
    texts = [file.read_text() for file in files if file is not None]
    made = subprocess.run(
        [*_command(program, folder), "--bootstrap"],
        input="\n".join(["CREATE DATABASE mysql;", "USE mysql;", *texts]),
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        scratch.cleanup()
        raise RunError("MariaDB could not make its tables", hint=made.stderr.strip()[-500:])
    return scratch

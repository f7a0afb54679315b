"""ClickHouse's engine, embedded in a process of its own, behind a few lines of HTTP.

Not a ClickHouse server: what is tested through it are statements, types, engines, tokens of blocks
and errors of the engine. Logins, status codes and connections are those of these lines.
`python -m tests.clickhouse_shim PORT FOLDER` is the process.
"""
# pyright: basic

import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self
from urllib.parse import parse_qsl, urlsplit

import httpx

from kaflow_engine.testing.services.child import Child, free_ports, listening

USER = "kaflow"
PASSWORD = "pass-word:of/clickhouse"
ROOT = Path(__file__).parents[1]
START_SECONDS = 60.0
_NOT_THERE = {60, 81}
_FORMAT = b" FORMAT ArrowStream\n"


class ClickHouseShim:
    """The engine on 127.0.0.1; ends with this process at the latest.

    Its data stay while it is stopped, and go when it is closed.
    """

    def __init__(self) -> None:
        self._port = free_ports(1)[0]
        self._child: Child | None = None
        self._scratch: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        self._scratch = TemporaryDirectory(prefix="kaflow-clickhouse-", ignore_cleanup_errors=True)
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        self._scratch.cleanup()

    @property
    def url(self) -> str:
        """Its address, without a login."""
        return f"http://127.0.0.1:{self._port}/"

    @property
    def connection(self) -> dict[str, str]:
        """What the configuration says of it."""
        return {"url": self.url, "user": USER, "password": PASSWORD}

    def start(self) -> None:
        """Start it, with the data that it had, and return when it answers."""
        folder = Path(self._scratch.name)
        paths = [str(ROOT), str(ROOT / "engine"), os.environ.get("PYTHONPATH", "")]
        program = [sys.executable, "-m", "tests.clickhouse_shim", str(self._port), str(folder)]
        command = ["env", f"PYTHONPATH={os.pathsep.join(paths)}", *program]
        self._child = Child(command, folder / "shim.log")
        self._child.wait_until(lambda: listening(self._port), "the engine", START_SECONDS)

    def stop(self) -> None:
        """End it at once: its engine has no data in memory alone."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def ask(self, sql: str) -> list[Any]:
        """Run a statement; return the rows of a SELECT, each value as JSON has it."""
        form = " FORMAT JSONCompact" if sql.startswith("SELECT") else ""
        headers = {"X-ClickHouse-User": USER, "X-ClickHouse-Key": PASSWORD}
        answer = httpx.post(self.url, content=f"{sql}{form}".encode(), headers=headers)
        assert answer.status_code == 200, answer.text
        return [tuple(row) for row in answer.json()["data"]] if form else []

    def trouble(self, **wanted: object) -> None:
        """Let the next statements go wrong that match a pattern.

        Args:
            wanted: `match`; `times`; and `code`, of the error, or none: it is done, and the
                connection ends without an answer.
        """
        httpx.post(f"{self.url}trouble", params=wanted)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    session: Any
    lock = threading.Lock()
    troubles: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        """Answer a statement."""
        place = urlsplit(self.path)
        asked = dict(parse_qsl(place.query))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if place.path == "/trouble":
            self.troubles.extend([asked] * int(asked.get("times", 1)))
            return self._answer(200, b"")
        login = self.headers["X-ClickHouse-User"], self.headers["X-ClickHouse-Key"]
        if login != (USER, PASSWORD):
            said = f"Code: 516. DB::Exception: {login[0]}: Authentication failed"
            return self._answer(403, said.encode(), 516)
        trouble = self._trouble(body)
        if trouble is not None and "code" in trouble:
            code = int(trouble["code"])
            return self._answer(500, f"Code: {code}. DB::Exception: Trouble".encode(), code)
        try:
            with self.lock, TemporaryDirectory(prefix="kaflow-clickhouse-rows-") as folder:
                done = self.session.query(_by_file(body, folder), "TabSeparated").bytes()
        except Exception as error:
            found = re.match(r"Code: (\d+)", str(error))
            code = int(found[1]) if found else 1002
            return self._answer(404 if code in _NOT_THERE else 500, str(error).encode(), code)
        if trouble is not None:
            self.close_connection = True
            return None
        return self._answer(200, done)

    def _trouble(self, body: bytes) -> dict[str, str] | None:
        for each in self.troubles:
            if re.search(each.get("match", "").encode(), body):
                self.troubles.remove(each)
                return each
        return None

    def _answer(self, status: int, body: bytes, code: int | None = None) -> None:
        self.send_response(status)
        if code is not None:
            self.send_header("X-ClickHouse-Exception-Code", str(code))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about: object) -> None:
        """Say nothing."""


def _by_file(body: bytes, folder: str) -> bytes:
    """Return a statement whose rows are in a file.

    Behind the statement, the embedded engine takes an empty line for their end, and Arrow may have
    such bytes anywhere; a server does not look for one.
    """
    head, found, rows = body.partition(_FORMAT)
    if not found:
        return body
    path = Path(folder, "rows")
    path.write_bytes(rows)
    into, _, settings = head.partition(b" SETTINGS ")
    file = f" FROM INFILE '{path}' SETTINGS ".encode()
    return into + file + settings + _FORMAT.rstrip()


def _main(port: int, folder: Path) -> None:
    from chdb import session  # half a gigabyte, in this process alone

    _Handler.session = session.Session(str(folder / "data"))
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    _main(int(sys.argv[1]), Path(sys.argv[2]))

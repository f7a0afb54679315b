"""The REST protocol of Iceberg over a catalog in a file: what the sink's client asks for, no more.

Not a catalog server: what is tested through it is the client's side, and commits that conflict by
their requirements instead of by the place of the metadata.
"""
# pyright: basic

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import CommitTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema

TOKEN = "token-of-the-catalog"
_STATUS = {
    CommitFailedException: 409,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
}


@contextmanager
def rest_catalog(folder: Path) -> Iterator[str]:
    """Serve a catalog whose tables lie in a folder; gives its address."""
    catalog = SqlCatalog("served", uri=f"sqlite:///{folder}/served.db", warehouse=str(folder))
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answered("GET")

        def do_HEAD(self) -> None:
            self._answered("HEAD")

        def do_POST(self) -> None:
            self._answered("POST")

        def _answered(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, answer = 200, {}
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                status, answer = 401, _error("NotAuthorizedException", "who are you?", 401)
            else:
                try:
                    with lock:
                        parts = urlsplit(self.path).path.strip("/").split("/")[1:]
                        answer = _answer(catalog, method, parts, body)
                except tuple(_STATUS) as error:
                    status = _STATUS[type(error)]
                    answer = _error(f"{type(error).__name__}", str(error), status)
            data = b"" if method == "HEAD" else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *about: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
    catalog.close()


def _answer(catalog: SqlCatalog, method: str, parts: list[str], body: bytes) -> dict:
    match method, parts:
        case "GET", ["config"]:
            return {"defaults": {}, "overrides": {}}
        case "POST", ["namespaces"]:
            said = json.loads(body)
            catalog.create_namespace(tuple(said["namespace"]))
            return {"namespace": said["namespace"], "properties": {}}
        case (("GET" | "HEAD"), ["namespaces", name]):
            return {"namespace": [name], "properties": catalog.load_namespace_properties(name)}
        case "POST", ["namespaces", namespace, "tables"]:
            said = json.loads(body)
            schema = Schema.model_validate(said["schema"])
            return _loaded(catalog.create_table((namespace, said["name"]), schema))
        case (("GET" | "HEAD"), ["namespaces", namespace, "tables", name]):
            return _loaded(catalog.load_table((namespace, name)))
        case "POST", ["namespaces", namespace, "tables", name]:
            wanted = CommitTableRequest.model_validate_json(body)
            table = catalog.load_table((namespace, name))
            catalog.commit_table(table, wanted.requirements, wanted.updates)
            return _loaded(catalog.load_table((namespace, name)))
    raise AssertionError((method, parts))


def _loaded(table) -> dict:
    metadata = json.loads(table.metadata.model_dump_json())
    return {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}


def _error(kind: str, said: str, status: int) -> dict:
    return {"error": {"message": said, "type": kind, "code": status}}

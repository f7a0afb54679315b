"""The registry client, against a registry of a few lines."""

import base64
import json
import pickle
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kaflow_engine.errors import SinkError, SourceError
from kaflow_engine.formats.references import parts_of
from kaflow_engine.formats.schema_registry import RegisteredSchema, Registry, UnknownSchema

LONG = '{"type":"record","name":"V","fields":[{"name":"a","type":"long"}]}'


def referring(text, subject):
    reference = {"name": f"{subject}.json", "subject": subject, "version": 4}
    return {"schemaType": "JSON", "schema": text, "references": [reference]}


class Fake(BaseHTTPRequestHandler):
    """Knows schema 1 of subject `known`; refuses `refused`; fails as often as it is told."""

    def do_GET(self):
        if self.server.failures:
            self.server.failures -= 1
            return self.answer(503, {"error_code": 50300, "message": "warming up"})
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        if self.path.startswith("/subjects/known/versions/latest"):
            found = {"subject": "known", "version": 3, "id": 1, "schema": LONG}
            return self.answer(200, found)
        if self.path.startswith("/schemas/ids/1"):
            return self.answer(200, {"schema": LONG})
        if self.path.startswith("/schemas/ids/2"):
            return self.answer(200, referring("outer", "inner"))
        if self.path.startswith("/subjects/inner/versions/4"):
            found = {"subject": "inner", "version": 4, "id": 3, **referring("middle", "leaf")}
            return self.answer(200, found)
        if self.path.startswith("/subjects/leaf/versions/4"):
            found = {"subject": "leaf", "version": 4, "id": 4, "schema": "last"}
            return self.answer(200, {**found, "schemaType": "JSON"})
        if self.path.startswith("/schemas/ids/"):
            return self.answer(404, {"error_code": 40403, "message": "Schema not found"})
        if self.path.startswith("/subjects/secret"):
            return self.answer(401, {"error_code": 401, "message": "Unauthorized"})
        if self.path.startswith("/subjects/"):
            return self.answer(404, {"error_code": 40401, "message": "Subject not found"})
        return self.answer(404, None)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if "refused" in self.path:
            return self.answer(409, {"error_code": 409, "message": "field 'a' changed type"})
        return self.answer(200, {"id": 7})

    def answer(self, status, body):
        data = b"<html>" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    server.failures, server.seen = 0, []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def registry(server, **settings):
    return Registry(url=f"http://127.0.0.1:{server.server_port}", **{"patience": 2.0, **settings})


def test_latest(server):
    assert registry(server).latest("known") == RegisteredSchema(1, 3, LONG)
    assert registry(server).latest("other") is None


def test_by_id_is_asked_once(server):
    found = registry(server)
    assert found.by_id(1) == pickle.loads(pickle.dumps(found)).by_id(1) == LONG
    assert len(server.seen) == 1


def test_what_a_schema_refers_to_comes_with_it(server):
    found = registry(server).by_id(2)
    assert parts_of(found) == ("outer", {"inner.json": "middle", "leaf.json": "last"})
    assert parts_of(registry(server).by_id(1)) == (LONG, {})


def test_an_unknown_id(server):
    with pytest.raises(UnknownSchema):
        registry(server).by_id(99)


def test_register(server):
    assert registry(server).register("new", LONG, "AVRO") == 7


def test_an_incompatible_schema_is_refused_with_the_registrys_message(server):
    with pytest.raises(SinkError, match=r"schema of 'refused': field 'a' changed type"):
        registry(server).register("refused", LONG, "AVRO")


def test_waits_for_a_registry_that_is_not_ready(server):
    server.failures = 2
    assert registry(server).latest("known") is not None


def test_gives_up_naming_the_address_without_credentials(server):
    url = f"http://ann:hush@127.0.0.1:{server.server_port}"
    server.failures = 99
    with pytest.raises(SourceError, match=r"at http://127.0.0.1:\d+ does not answer") as error:
        Registry(url=url, patience=0.2).latest("known")
    assert "hush" not in str(error.value)


def test_nobody_listens():
    with pytest.raises(SourceError, match="does not answer"):
        Registry(url="http://127.0.0.1:9", patience=0.2).latest("known")


@pytest.mark.parametrize("settings", [{}, {"user": "ann", "password": "hush"}])
def test_credentials(server, settings):
    found = registry(server, **settings)
    if not settings:
        found = Registry(url=found.url.replace("http://", "http://ann:hush@"), patience=2.0)
    found.latest("known")
    assert server.seen[0][1] == "Basic " + base64.b64encode(b"ann:hush").decode()
    assert "hush" not in repr(found)


def test_wrong_credentials_are_not_retried(server):
    with pytest.raises(SourceError, match="HTTP 401"):
        registry(server, patience=60.0).latest("secret")


def test_a_server_that_is_no_registry(server):
    wrong = Registry(url=f"http://127.0.0.1:{server.server_port}/nowhere", patience=60.0)
    with pytest.raises(SourceError, match="HTTP 404"):
        wrong.latest("known")

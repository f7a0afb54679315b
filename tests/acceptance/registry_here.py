"""A schema registry of a few lines that a test can take away and bring back."""
# pyright: basic

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class SmallRegistry:
    """Knows the schemas that a test gives it; its address stays the same while it is away."""

    def __init__(self):
        self.schemas: dict[int, str] = {}
        self.latest: dict[str, int] = {}
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    def start(self):
        if self._server is not None:
            return
        registry = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self):
                parts = self.path.split("?")[0].strip("/").split("/")
                if parts[:2] == ["schemas", "ids"] and int(parts[2]) in registry.schemas:
                    return self.answer(200, {"schema": registry.schemas[int(parts[2])]})
                if parts[0] == "subjects" and parts[1] in registry.latest:
                    number = registry.latest[parts[1]]
                    found = {"subject": parts[1], "version": number, "id": number}
                    return self.answer(200, found | {"schema": registry.schemas[number]})
                return self.answer(404, {"error_code": 40403, "message": "not found"})

            def answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Answers)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self):
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def add(self, number, fields, subject=None):
        """Register a record schema; it is the newest of its subject."""
        record = {
            "type": "record",
            "name": "V",
            "fields": [{"name": name, "type": kind, **more} for name, kind, more in fields],
        }
        self.schemas[number] = json.dumps(record)
        if subject is not None:
            self.latest[subject] = number

"""A service that adds a column to each row of a list, until its input is closed:
`python -m bench.measure.answering PORT`."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answers(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a list of rows."""
        rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for row in rows:
            row["twice"] = row["amount"] * 2
        body = json.dumps(rows).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()

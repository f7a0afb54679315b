"""A server of tokens for one client, and the keys that they are signed with."""

import base64
import json
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa


class Tokens:
    """Signs tokens for who knows the secret."""

    def __init__(self, client: str, secret: str) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pair = base64.b64encode(f"{client}:{secret}".encode()).decode()
        self._expected = f"Basic {pair}"
        self.asked: list[tuple[str, str]] = []
        """The user agent and the scope of each request that was granted."""

    def write_keys(self, path: Path) -> Path:
        """Write the public key, as brokers want it."""
        numbers = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig"}
        key |= {"n": _number(numbers.n), "e": _number(numbers.e)}
        path.write_text(json.dumps({"keys": [key]}))
        return path

    def token(self, scope: str) -> str:
        """Return a token."""
        now = int(time.time())
        claims = {"sub": "kaflow", "aud": "kafka", "scope": scope, "iat": now, "exp": now + 3600}
        parts = [{"alg": "RS256", "kid": "one", "typ": "JWT"}, claims]
        text = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
        return (
            f"{text}.{_encoded(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"
        )

    @contextmanager
    def served(self):
        """Serve tokens; yields the address."""
        tokens = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                asked = parse_qs(self.rfile.read(size).decode())
                granted = self.headers["Authorization"] == tokens._expected
                granted = granted and asked["grant_type"] == ["client_credentials"]
                scope = asked.get("scope", [""])[0]
                answer = {"access_token": tokens.token(scope), "token_type": "Bearer"}
                if granted:
                    tokens.asked.append((self.headers.get("User-Agent", ""), scope))
                body = json.dumps({**answer, "expires_in": 3600} if granted else {}).encode()
                self.send_response(200 if granted else 401)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *about: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = Thread(target=server.serve_forever, args=(0.1,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/token"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

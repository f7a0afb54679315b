"""An S3-compatible store of the test's own, with one bucket."""
# pyright: basic

import logging
from urllib.request import Request, urlopen

from kaflow_engine.state.storage.bucket import Bucket, BucketSettings

NAME = "kaflow"
KEYS = {"access_key": "any", "secret_key": "any", "region": "eu-west-1"}


class Store:
    """Use it in a `with`."""

    def __enter__(self) -> "Store":
        from moto.server import ThreadedMotoServer  # takes a second, and few tests need it

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer("127.0.0.1", 0)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.endpoint = f"http://{host}:{port}"
        self.bucket("")._client.create_bucket(
            Bucket=NAME, CreateBucketConfiguration={"LocationConstraint": KEYS["region"]}
        )
        return self

    def __exit__(self, *about: object) -> None:
        reset = Request(f"{self.endpoint}/moto-api/reset", method="POST")
        urlopen(reset, timeout=20).close()  # what it holds outlives the server, in this process
        self._server.stop()

    def bucket(self, prefix: str, **other: str) -> Bucket:
        """The objects below a prefix."""
        about = {"bucket": NAME, "prefix": prefix, "endpoint": self.endpoint, **KEYS, **other}
        return Bucket(BucketSettings(**about))

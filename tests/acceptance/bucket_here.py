"""An S3-compatible store of the test's own, with one bucket."""
# pyright: basic

import logging
from contextlib import ExitStack
from unittest.mock import patch
from urllib.request import Request, urlopen

from kaflow_engine.state.storage.bucket import Bucket, BucketSettings

NAME = "kaflow"
KEYS = {"access_key": "any", "secret_key": "any", "region": "eu-west-1"}


class Store:
    """Use it in a `with`."""

    def __enter__(self) -> "Store":
        from moto.server import ThreadedMotoServer  # takes a second, and few tests need it

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._patched = ExitStack()
        self._patched.enter_context(_as_documented())
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
        self._patched.close()

    def bucket(self, prefix: str, **other: str) -> Bucket:
        """The objects below a prefix."""
        about = {"bucket": NAME, "prefix": prefix, "endpoint": self.endpoint, **KEYS, **other}
        return Bucket(BucketSettings(**about))


def _as_documented():
    """Let an upload that is gone be no error of the server, which it is in moto 5."""
    from moto.s3.exceptions import NoSuchUpload
    from moto.s3.models import S3Backend

    complete = S3Backend.complete_multipart_upload

    def answer(self, bucket_name, multipart_id, body):
        if multipart_id not in self.get_bucket(bucket_name).multiparts:
            raise NoSuchUpload(upload_id=multipart_id)
        return complete(self, bucket_name, multipart_id, body)

    return patch.object(S3Backend, "complete_multipart_upload", answer)

"""An S3-compatible store of the test's own, with one bucket: a process, with data of its own."""
# pyright: basic

import logging
import sys
from tempfile import TemporaryDirectory
from time import sleep

from kaflow_engine.state.storage.bucket import Bucket, BucketSettings
from kaflow_engine.testing.services.kept_server import KeptServer

NAME = "kaflow"
KEYS = {"access_key": "any", "secret_key": "any", "region": "eu-west-1"}
_START_S = 120


class Store(KeptServer):
    """Use it in a `with`; what it holds goes when it is stopped."""

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and make the bucket."""
        folder = self._folder(lambda: TemporaryDirectory(prefix="kaflow-store-"))
        command = [sys.executable, __file__, str(self.port)]  # tests may stand in any folder
        self._run(command, folder, "the store", _START_S)
        self.bucket("")._client.create_bucket(
            Bucket=NAME, CreateBucketConfiguration={"LocationConstraint": KEYS["region"]}
        )

    def bucket(self, prefix: str, **other: str) -> Bucket:
        """The objects below a prefix."""
        about = {"bucket": NAME, "prefix": prefix, "endpoint": self.endpoint, **KEYS, **other}
        return Bucket(BucketSettings(**about))


def _as_documented() -> None:
    """Let an upload that is gone be no error of the server, which it is in moto 5."""
    from moto.s3.exceptions import NoSuchUpload
    from moto.s3.models import S3Backend

    complete = S3Backend.complete_multipart_upload

    def answer(self, bucket_name, multipart_id, body):
        if multipart_id not in self.get_bucket(bucket_name).multiparts:
            raise NoSuchUpload(upload_id=multipart_id)
        return complete(self, bucket_name, multipart_id, body)

    S3Backend.complete_multipart_upload = answer


def _main(port: int) -> None:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    _as_documented()
    ThreadedMotoServer("127.0.0.1", port).start()
    while True:
        sleep(3600)


if __name__ == "__main__":
    _main(int(sys.argv[1]))

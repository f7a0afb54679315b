"""What is wrong with a bucket that files are written to: it is said, and no key with it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.connectors.files.errors import FolderUnfit
from kaflow_engine.errors import KaflowError, SinkAway, SinkError
from tests.acceptance.bucket_here import Store
from tests.engine.connectors.files_here import OWNER, FilesOfBucket

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store() as found:
        yield found


@pytest.fixture
def files(store: Store, tmp_path: Path) -> FilesOfBucket:
    return FilesOfBucket(store, f"{tmp_path.name}/out", {"n": "INTEGER"}, format="json")


def two(files: FilesOfBucket) -> Any:
    """Return a batch of two files."""
    return files.batch(1, files.rows("(1)"), files.rows("(2)", slot=1))


def no_bucket(files: FilesOfBucket, patch: pytest.MonkeyPatch) -> None:
    settings = {**files.output.settings, "folder": "s3://another/out"}
    files.output = replace(files.output, settings=settings)
    files.open()


def no_keys(files: FilesOfBucket, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        patch.delenv(name, raising=False)
    reached = files.output.connection
    files.output = replace(
        files.output, connection={n: v for n, v in reached.items() if not n.endswith("_key")}
    )
    files.open()


def refused(files: FilesOfBucket, patch: pytest.MonkeyPatch) -> None:
    files.open()
    _answering(patch, "AccessDenied", 403)
    two(files)


def aborted(files: FilesOfBucket, patch: pytest.MonkeyPatch) -> None:
    batch = two(files)
    for name, upload in files.bucket.staged():
        files.bucket.abort(name, upload)
    files.open().commit(batch)


def damaged(files: FilesOfBucket, patch: pytest.MonkeyPatch) -> None:
    files.bucket.put("_kaflow/ledger", b"{", None)
    files.outlet.look(files.output, pa.schema([]), OWNER)


def away(files: FilesOfBucket, patch: pytest.MonkeyPatch) -> None:
    opened = files.open()
    batch = two(files)
    _answering(patch, "SlowDown", 503)
    opened.commit(batch)


def nothing_there(files: FilesOfBucket, patch: pytest.MonkeyPatch) -> None:
    files.outlet.read(files.output, 0, 1)


def _answering(patch: pytest.MonkeyPatch, code: str, status: int) -> None:
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

    said = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}

    def answer(self: object, operation: str, given: object) -> None:
        raise ClientError(said, operation)  # pyright: ignore[reportArgumentType]  # of the test

    patch.setattr(BaseClient, "_make_api_call", answer)


@pytest.mark.parametrize(
    ("do", "kind", "words", "hint"),
    [
        (no_bucket, FolderUnfit, "bucket 'another' does not exist", "`folder` of output 'files:s3"),
        (no_keys, FolderUnfit, "unable to locate credentials", "set accessKey, secretKey"),
        (refused, FolderUnfit, r"in s3://kaflow/\S+ was refused: AccessDenied", "check the keys"),
        (aborted, FolderUnfit, r"is not in s3://kaflow/\S+ any more", "must leave them a day"),
        (damaged, FolderUnfit, r"'s3://kaflow/\S+/_kaflow/ledger' is damaged", "restore it"),
        (away, SinkAway, r"in s3://kaflow/\S+ failed: SlowDown", "the network"),
        (nothing_there, SinkError, r"folder 's3://kaflow/\S+'", ""),
    ],
)
def test_what_is_wrong_is_said_without_keys(
    files: FilesOfBucket,
    monkeypatch: pytest.MonkeyPatch,
    do: Any,
    kind: type[KaflowError],
    words: str,
    hint: str,
) -> None:
    secret = {"secret_key": "hush-hush", "access_key": "AKIAHUSH"}
    files.output = replace(files.output, connection={**files.output.connection, **secret})
    with pytest.raises(kind, match=words) as caught:
        do(files, monkeypatch)
    assert hint in (caught.value.hint or "")
    assert "hush" not in f"{caught.value} {caught.value.hint} {files.output!r}".lower()


def test_a_store_that_comes_back(files: FilesOfBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, batch = files.open(), two(files)
    with monkeypatch.context() as patched:
        _answering(patched, "SlowDown", 503)
        with pytest.raises(SinkAway):
            opened.commit(batch)
    opened.commit(batch)
    assert files.texts() == ['{"n":1}\n', '{"n":2}\n']

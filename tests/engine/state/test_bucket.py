# pyright: basic
"""A store that speaks S3: what is written under a condition, and what goes wrong."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ConnectionClosedError

from kaflow_engine.errors import StateError
from kaflow_engine.state.storage.bucket import Bucket, BucketAway, BucketSettings, ObjectChanged
from tests.acceptance.bucket_here import Store

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def store():
    with Store() as found:
        yield found


def test_an_object_is_written_under_a_condition(store):
    bucket = store.bucket("conditions")
    assert bucket.get("a") is None
    first = bucket.put("a", b"1", None)
    with pytest.raises(ObjectChanged, match=r"another writer has written 'a' in s3://kaflow/cond"):
        bucket.put("a", b"2", None)
    second = bucket.put("a", b"2", first)
    with pytest.raises(ObjectChanged):
        bucket.put("a", b"3", first)
    assert bucket.get("a") == (b"2", second)


@pytest.mark.parametrize("replacing", [False, True])
def test_the_answer_to_a_write_is_lost(store, monkeypatch, replacing):
    """The client sends it again, and is refused because of its own first try."""
    bucket = store.bucket(f"lost-{replacing}")
    before = bucket.put("head", b"0", None) if replacing else None
    session, left = bucket._client._endpoint.http_session, ["lost"]
    send = session.send

    def send_and_lose(request):
        answer = send(request)
        if left:
            raise ConnectionClosedError(endpoint_url=left.pop())
        return answer

    monkeypatch.setattr(session, "send", send_and_lose)
    tag = bucket.put("head", b"1", before)
    assert not left
    assert bucket.get("head") == (b"1", tag)
    with pytest.raises(ObjectChanged):
        bucket.put("head", b"2", before)


def test_one_of_many_writers_wins(store):
    bucket = store.bucket("race")
    tag = bucket.put("head", b"", None)

    def write(number):
        try:
            bucket.put("head", b"%d" % number, tag)
        except ObjectChanged:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(write, range(8)))
    assert won.count(True) == 1
    assert bucket.get("head")[0] == b"%d" % won.index(True)


def test_files_come_and_go(store, tmp_path):
    bucket, data = store.bucket("/files/"), b"x" * 100_000
    tmp_path.joinpath("in").write_bytes(data)
    bucket.upload(tmp_path / "in", "f/1")
    bucket.upload(tmp_path / "in", "f/2")
    digest = bucket.download("f/1", tmp_path / "out")
    assert digest == hashlib.sha256(data).hexdigest()
    assert tmp_path.joinpath("out").read_bytes() == data
    assert bucket.download("f/3", tmp_path / "none") is None
    assert bucket.sizes("f/") == {"f/1": 100_000, "f/2": 100_000}
    bucket.delete(["f/1", "f/3"])
    assert list(bucket.sizes("")) == ["f/2"]


def test_a_bucket_that_does_not_exist(store):
    with pytest.raises(StateError, match="bucket 'elsewhere' does not exist\n  hint: create it"):
        store.bucket("", bucket="elsewhere").sizes("")


def test_nobody_answers(store):
    with pytest.raises(BucketAway, match="reading 'a' in s3://kaflow failed"):
        store.bucket("", endpoint="http://127.0.0.1:9").get("a")


def test_no_keys_are_found(store, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    bucket = Bucket(BucketSettings(bucket="kaflow", endpoint=store.endpoint, region="eu-west-1"))
    with pytest.raises(StateError, match=r"unable to locate credentials\n  hint: set accessKey"):
        bucket.get("a")


def test_keys_are_not_shown(store):
    settings = BucketSettings(bucket="b", access_key="AKIA", secret_key="hush")
    assert "hush" not in f"{settings!r} {Bucket(settings)}"

"""Objects of an S3-compatible store, some of them written under a condition."""

from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from kaflow_engine.errors import StateError

_DENIED = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "403", "ExpiredToken")
_MISSING = ("NoSuchKey", "404", "NotFound")
_CHANGED = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_PART = 32 << 20
"""Bytes of a part of an upload; the last may be smaller, others take at least 5 MiB."""
_MOST_DELETED = 1000


class BucketAway(StateError):
    """The store does not answer, and may come back."""

    outage = "retry"


class ObjectChanged(StateError):
    """An object that was to be written under a condition is not what it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketSettings:
    """How to reach a bucket; what is None is found as boto3 finds it."""

    bucket: str
    prefix: str = ""
    region: str | None = None
    endpoint: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    named_by: str = "state.rocksdb.checkpoint.s3.bucket"
    """What says the name of the bucket, for errors."""


class Bucket:
    """The objects below one prefix of a bucket; names are relative to it, with `/`."""

    def __init__(self, settings: BucketSettings) -> None:
        self._settings = settings
        prefix = settings.prefix.strip("/")
        self._prefix = f"{prefix}/" if prefix else ""

    def __str__(self) -> str:
        return f"s3://{self._settings.bucket}/{self._prefix}".rstrip("/")

    def get(self, name: str) -> tuple[bytes, str] | None:
        """Return the content and the tag of an object; None if there is none."""
        with self._telling(f"reading '{name}'"):
            try:
                found = self._client.get_object(**self._object(name))
                return found["Body"].read(), found["ETag"]
            except self._client.exceptions.ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise

    def put(self, name: str, data: bytes, replacing: str | None) -> str:
        """Write an object if it is still the one of a tag, or still missing; return its tag.

        A write whose answer is lost is sent again and refused because of its own first try, so what
        is there decides.

        Raises:
            ObjectChanged: It is not: someone else wrote it.
        """
        condition = {"IfNoneMatch": "*"} if replacing is None else {"IfMatch": replacing}
        with self._telling(f"writing '{name}'"):
            try:
                return self._client.put_object(Body=data, **self._object(name), **condition)["ETag"]
            except self._client.exceptions.ClientError as error:
                if _code(error) not in _CHANGED and not (replacing and _code(error) in _MISSING):
                    raise
                found = self.get(name)
                if found is not None and found[0] == data:
                    return found[1]
                raise ObjectChanged(f"another writer has written '{name}' in {self}") from error

    def upload(self, path: Path, name: str) -> None:
        """Write an object with the content of a file, whole or not at all."""
        with self._telling(f"writing '{name}'"):
            self._client.upload_file(
                str(path), self._settings.bucket, self._prefix + name, Config=self._transfer
            )

    def download(self, name: str, path: Path) -> str | None:
        """Write a file with the content of an object; return its sha256, None if there is none."""
        with self._telling(f"reading '{name}'"):
            try:
                self._client.download_file(
                    self._settings.bucket, self._prefix + name, str(path), Config=self._transfer
                )
            except self._client.exceptions.ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise
        with path.open("rb") as file:
            digest = sha256()
            while block := file.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()

    def stage(self, name: str, data: bytes) -> str:
        """Upload an object that no one sees until `complete`; return what that is to be given."""
        with self._telling(f"writing '{name}'"):
            where, client = self._object(name), self._client
            upload, view = client.create_multipart_upload(**where)["UploadId"], memoryview(data)
            tags: list[str] = []
            for start in range(0, max(len(view), 1), _PART):
                part = bytes(view[start : start + _PART])
                number = {"UploadId": upload, "PartNumber": len(tags) + 1}
                tags.append(client.upload_part(**where, **number, Body=part)["ETag"])
            return " ".join((upload, *tags))

    def complete(self, name: str, staged: str) -> bool:
        """Make an object visible, at once and whole; tell whether it is there.

        It is not if the upload was aborted. One that was completed before is there, and is left as
        it is.
        """
        upload, *tags = staged.split(" ")
        parts = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]
        with self._telling(f"writing '{name}'"):
            try:
                self._client.complete_multipart_upload(
                    **self._object(name), UploadId=upload, MultipartUpload={"Parts": parts}
                )
            except self._client.exceptions.ClientError as error:
                if _code(error) != "NoSuchUpload":
                    raise
                return name in self.sizes(name)
        return True

    def abort(self, name: str, staged: str) -> None:
        """End an upload that is not complete; nothing happens where there is none."""
        with self._telling(f"writing '{name}'"):
            try:
                self._client.abort_multipart_upload(
                    **self._object(name), UploadId=staged.partition(" ")[0]
                )
            except self._client.exceptions.ClientError as error:
                if _code(error) not in ("NoSuchUpload", *_MISSING):
                    raise

    def staged(self) -> list[tuple[str, str]]:
        """Return the uploads that are not complete: names, and what `abort` is to be given."""
        with self._telling("listing uploads"):
            pages = self._client.get_paginator("list_multipart_uploads")
            return [
                (found["Key"].removeprefix(self._prefix), found["UploadId"])
                for page in pages.paginate(Bucket=self._settings.bucket, Prefix=self._prefix)
                for found in page.get("Uploads", ())
                if found["Key"].startswith(self._prefix)
            ]

    def sizes(self, prefix: str) -> dict[str, int]:
        """Return the bytes of every object whose name starts with a prefix."""
        with self._telling(f"listing '{prefix}'"):
            return {name: size for name, size, _ in self._listed(prefix)}

    def written(self, prefix: str) -> dict[str, int]:
        """Return when every object was written whose name starts with a prefix: epoch ms."""
        with self._telling(f"listing '{prefix}'"):
            return {name: when for name, _, when in self._listed(prefix)}

    def delete(self, names: Collection[str]) -> None:
        """Remove objects; nothing happens where there is none."""
        keys = [{"Key": self._prefix + name} for name in names]
        for start in range(0, len(keys), _MOST_DELETED):
            some = keys[start : start + _MOST_DELETED]
            with self._telling("deleting objects"):
                self._client.delete_objects(
                    Bucket=self._settings.bucket, Delete={"Objects": some, "Quiet": True}
                )

    def _listed(self, prefix: str) -> Iterator[tuple[str, int, int]]:
        pages = self._client.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self._settings.bucket, Prefix=self._prefix + prefix):
            for found in page.get("Contents", ()):
                when = int(found["LastModified"].timestamp() * 1000)
                yield found["Key"].removeprefix(self._prefix), found["Size"], when

    def _object(self, name: str) -> dict[str, str]:
        return {"Bucket": self._settings.bucket, "Key": self._prefix + name}

    @cached_property
    def _client(self) -> Any:
        from boto3.session import Session  # takes 0.2 s, and few pipelines need it
        from botocore.config import Config

        settings = self._settings
        config = Config(
            connect_timeout=5,
            read_timeout=30,
            retries={"mode": "standard", "max_attempts": 3},
            s3={"addressing_style": "path" if settings.endpoint else "auto"},
            # contents have checksums of ours, which every compatible store takes
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        return Session().client(
            "s3",
            region_name=settings.region,
            endpoint_url=settings.endpoint,
            aws_access_key_id=settings.access_key,
            aws_secret_access_key=settings.secret_key,
            config=config,
        )

    @cached_property
    def _transfer(self) -> Any:
        from boto3.s3.transfer import TransferConfig

        return TransferConfig(multipart_threshold=_PART, multipart_chunksize=_PART)

    @contextmanager
    def _telling(self, doing: str) -> Generator[None]:
        """Turn what boto3 raises into an error that says what to do."""
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import (
            BotoCoreError,
            ClientError,
            ConnectionError,
            HTTPClientError,
            NoCredentialsError,
            NoRegionError,
            PartialCredentialsError,
        )

        try:
            yield
        except (NoCredentialsError, PartialCredentialsError, NoRegionError) as error:
            raise StateError(
                f"{doing} in {self} failed: {str(error).lower()}",
                hint="set accessKey, secretKey and region below state.rocksdb.checkpoint.s3, or "
                "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION",
            ) from error
        except (ConnectionError, HTTPClientError) as error:
            raise self._away(doing, f"{error}") from error
        except ClientError as error:
            raise self._refused(doing, error) from error
        except Boto3Error as error:  # of a transfer; its cause only stands in its text
            raise self._away(doing, f"{error}") from error
        except BotoCoreError as error:
            raise StateError(f"{doing} in {self} failed: {error}") from error

    def _refused(self, doing: str, error: Any) -> StateError:
        code = _code(error)
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code == "NoSuchBucket":
            return StateError(
                f"bucket '{self._settings.bucket}' does not exist",
                hint=f"create it, or fix {self._settings.named_by}",
            )
        if code in _DENIED:
            return StateError(
                f"{doing} in {self} was refused: {code}",
                hint="check the keys, and that they may get, put, list and delete objects there",
            )
        if status >= 500 or code in ("SlowDown", "RequestTimeout"):
            return self._away(doing, code)
        return StateError(f"{doing} in {self} failed: {code}")

    def _away(self, doing: str, why: str) -> BucketAway:
        return BucketAway(
            f"{doing} in {self} failed: {why}",
            hint="check state.rocksdb.checkpoint.s3.endpoint and the network",
        )


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))

"""Buckets of S3-compatible stores, as folders."""

from dataclasses import dataclass, field
from functools import lru_cache
from io import BufferedReader
from typing import BinaryIO, cast

from pyarrow.fs import FileInfo, FileSelector, FileType, S3FileSystem

from kaflow_engine.connectors.files.source.seen import Seen, base_of, named
from kaflow_engine.errors import SourceAway, SourceUnfit

_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Buckets:
    """Files by `s3://<bucket>/<key>`; what is None is found as clients of AWS find it."""

    region: str | None = None
    endpoint: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)

    def look(self, path: str) -> list[Seen]:
        """Return the objects that a path names, by name.

        Raises:
            SourceUnfit: There is no such bucket.
            SourceAway: It cannot be read now.
        """
        scheme, base = path.partition("://")[0], base_of(path)
        try:
            one = _files(self).get_file_info(_key(base))
            if one.type == FileType.File and path == base:
                return [_seen(scheme, one)]
            below = _files(self).get_file_info(
                FileSelector(_key(base), recursive=True, allow_not_found=True)
            )
            bucket = _key(base).partition("/")[0]
            if not below and _files(self).get_file_info(bucket).type == FileType.NotFound:
                hint = "create it, or fix `path` of the source"
                raise SourceUnfit(f"there is no bucket '{bucket}'", hint=hint)
        except OSError as error:
            raise SourceAway(f"'{base}' cannot be read: {error}") from error
        return named(path, (_seen(scheme, f) for f in below if f.type == FileType.File))

    def state_of(self, path: str) -> Seen | None:
        """Return an object as it is now; None: there is none."""
        found = _files(self).get_file_info(_key(path))
        return _seen(path.partition("://")[0], found) if found.type == FileType.File else None

    def open(self, path: str) -> BinaryIO:
        """Open an object for reading."""
        raw = _files(self).open_input_file(_key(path))
        return cast(BinaryIO, BufferedReader(raw, _BUFFER))


@lru_cache(maxsize=8)
def _files(settings: Buckets) -> S3FileSystem:
    scheme, _, host = (settings.endpoint or "").rpartition("://")
    return S3FileSystem(
        access_key=settings.access_key,
        secret_key=settings.secret_key,
        region=settings.region,
        endpoint_override=host or None,
        scheme=scheme or "https",
    )


def _key(path: str) -> str:
    return path.partition("://")[2].rstrip("/")


def _seen(scheme: str, found: FileInfo) -> Seen:
    return Seen(path=f"{scheme}://{found.path}", size=found.size or 0, changed=found.mtime_ns or 0)

"""Files in a bucket: uploads of several parts, which no one sees before they are completed."""

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from io import BytesIO
from typing import BinaryIO, TypeVar

from kaflow_engine.connectors.contract import Output, Owner
from kaflow_engine.connectors.files.errors import FolderUnfit
from kaflow_engine.connectors.files.place import LEDGER, OWN, LedgerChanged, NewFile, Write
from kaflow_engine.connectors.read_back import nothing_there
from kaflow_engine.errors import SinkAway, StateError
from kaflow_engine.state.storage.bucket import (
    Bucket,
    BucketAway,
    BucketSettings,
    ObjectChanged,
)

_STORE = ("region", "endpoint", "access_key", "secret_key")
_AT_ONCE = 8
"""Requests on the way; each takes some ten milliseconds, whatever its size."""

T = TypeVar("T")


class FolderOfBucket:
    """`s3://<bucket>/<folder>`: a conditional write of the ledger takes the place of a lock."""

    def __init__(self, output: Output) -> None:
        self._output = output
        bucket, _, prefix = str(output.settings["folder"]).partition("://")[2].partition("/")
        known = {name: output.connection.get(name) for name in _STORE}
        about = BucketSettings(
            bucket=bucket, prefix=prefix, named_by=f"`folder` of output '{output.name}'", **known
        )
        self._bucket = _bucket(about)

    def __str__(self) -> str:
        return str(self._bucket)

    def require_fit(self) -> None:
        """Refuse a bucket that is not there, or may not be read."""
        self.read_ledger()

    def exclusive(self) -> AbstractContextManager[None]:
        """Do nothing: no one replaces a ledger that has changed."""
        return nullcontext()

    def read_ledger(self) -> tuple[bytes, str] | None:
        """Return the ledger and its tag; None: there is none."""
        with self._telling():
            return self._bucket.get(LEDGER)

    def write_ledger(self, data: bytes, replacing: str | None) -> str:
        """Replace the ledger, if it is still the one of a tag."""
        try:
            with self._telling():
                return self._bucket.put(LEDGER, data, replacing)
        except ObjectChanged as error:
            raise LedgerChanged from error

    def stage(self, name: str, epoch: int, batch: int, write: Write) -> str:
        """Upload a file, and do not complete it."""
        content = BytesIO()
        write(content)
        with self._telling():
            return self._bucket.stage(name, content.getvalue())

    def publish(self, files: Sequence[NewFile]) -> None:
        """Complete uploads."""

        def complete(file: NewFile) -> bool:
            return self._bucket.complete(file.name, file.staged)

        with self._telling():
            if all(_all(complete, files)):
                return
        raise FolderUnfit(
            f"an upload that a task made for output '{self._output.name}' is not in {self} any "
            "more",
            hint="a rule of the bucket that ends uploads must leave them a day",
        )

    def remove(self, names: Sequence[str]) -> None:
        """Remove files that have names."""
        with self._telling():
            self._bucket.delete(names)

    def begin(self, owner: Owner, staged: Mapping[str, str]) -> None:
        """End uploads of earlier runs.

        Those that the ledger knows are all that a run may complete which does not know yet that
        another one has begun. Others cost storage only; some stores do not list them.
        """
        with self._telling():
            self._abort([*staged.items(), *self._left(owner, None)])

    def clear(self, owner: Owner, batch: int) -> None:
        """End uploads of tries of a batch that is done, and of earlier ones."""
        with self._telling():
            self._abort(self._left(owner, batch))

    def _left(self, owner: Owner, batch: int | None) -> list[tuple[str, str]]:
        """Return uploads of a state, up to a batch; not those of folders that are others' own."""
        name = re.compile(rf"(?:[^/=]+=[^/]*/)*{owner.state}-{owner.generation}-(\d+)-\d+\.\w+")
        return [
            (key, upload)
            for key, upload in self._bucket.staged()
            if (found := name.fullmatch(key)) and (batch is None or int(found[1]) <= batch)
        ]

    def _abort(self, staged: Sequence[tuple[str, str]]) -> None:
        _all(lambda one: self._bucket.abort(*one), staged)

    def newest(self, suffix: str, since: int) -> list[str]:
        """Return files that have names, the newest first."""
        with self._telling():
            seen = [(when, name) for name, when in self._bucket.written("").items()]
        if not seen:
            raise nothing_there(self._output, f"folder '{self}'")
        return [
            name
            for when, name in sorted(seen, reverse=True)
            if when >= since and name.endswith(f".{suffix}") and OWN not in name.split("/")
        ]

    def open(self, name: str) -> BinaryIO:
        """Read a file, which is opened as it was then."""
        with self._telling():
            found = self._bucket.get(name)
        if found is None:
            raise SinkAway(f"'{name}' in {self} went while it was read")
        return BytesIO(found[0])

    @contextmanager
    def _telling(self) -> Generator[None]:
        """Raise errors of the store as errors of a sink."""
        try:
            yield
        except ObjectChanged:
            raise
        except BucketAway as error:
            raise SinkAway(error.message, hint=error.hint) from error
        except StateError as error:
            raise FolderUnfit(error.message, hint=error.hint) from error


@lru_cache(maxsize=16)
def _bucket(settings: BucketSettings) -> Bucket:
    """Return a bucket with the client of earlier batches: to make one takes a tenth of a second."""
    return Bucket(settings)


def _all(do: Callable[[T], object], ones: Iterable[T]) -> list[object]:
    """Do something with each, several at once."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(do, ones))

"""How what tasks give reaches those that take it: through Spark's shuffle, or as files."""

import mmap
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from tempfile import mkdtemp, mkstemp
from typing import Protocol
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import SparkContext, SparkFiles

from kaflow_engine.runtime.spark.master import is_local
from kaflow_engine.runtime.tasks.level_task import Data, Given


class Carrier(Protocol):
    """Takes what tasks give, and gives it to other tasks; picklable."""

    def send(self, given: Iterable[Given]) -> Iterator[Given]:
        """Yield what passes Spark in place of bytes."""
        ...

    def receive(self, given: Iterable[Given]) -> Iterator[Data]:
        """Yield the bytes of what has passed Spark."""
        ...

    def end(self) -> None:
        """Let go of everything; the job has ended."""
        ...


class ThroughSpark:
    """The shuffle takes the bytes themselves."""

    def send(self, given: Iterable[Given]) -> Iterator[Given]:
        """See `Carrier`."""
        yield from given

    def receive(self, given: Iterable[Given]) -> Iterator[Data]:
        """See `Carrier`."""
        yield from (data for _, data in given)

    def end(self) -> None:
        """See `Carrier`."""


@dataclass(frozen=True, slots=True)
class InFiles:
    """The shuffle takes names of files; all tasks run on one machine."""

    folder: str
    """Only the account that runs the tasks reads it."""

    @staticmethod
    def begin() -> "InFiles":
        """Make a folder for one job where Spark keeps files: it goes with the session, too."""
        root = SparkFiles.getRootDirectory()
        os.makedirs(root, 0o700, exist_ok=True)  # systems remove what no one used for days
        return InFiles(mkdtemp(prefix="exchange-", dir=root))

    def send(self, given: Iterable[Given]) -> Iterator[Given]:
        """See `Carrier`."""
        for number, data in given:
            handle, name = mkstemp(dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            yield number, os.fsencode(name)

    def receive(self, given: Iterable[Given]) -> Iterator[Data]:
        """See `Carrier`."""
        for _, name in given:
            with open(name, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            yield pa.py_buffer(memoryview(mapped))

    def end(self) -> None:
        """See `Carrier`."""
        shutil.rmtree(self.folder, ignore_errors=True)


_IN_FILES: "WeakKeyDictionary[SparkContext, bool]" = WeakKeyDictionary()
"""Asked once: Spark copies its configuration with a call of the JVM for each entry, some 10 ms."""


def carrier_of(spark: SparkContext) -> Carrier:
    """Return what carries rows between the tasks of one job.

    Through Spark each byte is copied in and out of its JVM, which takes as long as to decode it.
    Files are not encrypted, so that one who asks Spark to encrypt what it exchanges gets that.
    """
    if spark not in _IN_FILES:
        encrypted = spark.getConf().get("spark.io.encryption.enabled", "false") == "true"
        _IN_FILES[spark] = is_local(str(spark.master)) and not encrypted
    return InFiles.begin() if _IN_FILES[spark] else ThroughSpark()

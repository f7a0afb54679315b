"""The files of a journal: frames of records, each whole on the disk before the next is begun."""

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

import pyarrow as pa

from kaflow_engine.flow.records import RECORDS

COLUMNS = pa.schema([RECORDS.field(name) for name in ("timestamp", "key", "value", "headers")])
"""Of the records in a frame; their offsets follow from that of the first one."""

_HEAD = struct.Struct(">IIQI")
"""Bytes and checksum of what follows, the first offset, and the count of records."""
_SUFFIX = ".frames"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where some records are in a file."""

    path: Path
    position: int
    """Of their bytes."""
    size: int
    first: int
    end: int
    """The offset behind the last one."""

    def records(self) -> pa.Table:
        """Return the records (schema COLUMNS)."""
        with self.path.open("rb") as file:
            file.seek(self.position)
            return pa.ipc.open_stream(file.read(self.size)).read_all()

    def metadata(self) -> Mapping[bytes, bytes]:
        """Return what was written with the records, which are left packed."""
        with self.path.open("rb") as file:
            file.seek(self.position)
            return pa.ipc.open_stream(file).schema.metadata or {}


def segments(folder: Path) -> list[tuple[int, Path]]:
    """Return the files of a journal, each with the offset that it begins with, in their order."""
    found = folder.glob(f"*{_SUFFIX}") if folder.is_dir() else ()
    return sorted((int(path.stem), path) for path in found)


def frames(path: Path) -> Iterator[Frame]:
    """Yield the frames of a file, up to one that was not written to its end."""
    try:
        file = path.open("rb")
    except FileNotFoundError:  # it was removed, and what it held is no longer read
        return
    with file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            size, checksum, first, count = _HEAD.unpack(head)
            position = file.tell()
            if crc32(file.read(size)) != checksum or not count:
                return
            yield Frame(path=path, position=position, size=size, first=first, end=first + count)


def last_frame(folder: Path) -> Frame | None:
    """Return the frame with the last records of a journal; None: it has none."""
    until: int | None = None
    for first, path in reversed(segments(folder)):
        # what failed, where the next file goes on, is none
        found = [frame for frame in frames(path) if until is None or frame.first < until]
        if found:
            return found[-1]
        until = first
    return None


def frames_between(folder: Path, start: int, end: int) -> Iterator[Frame]:
    """Yield the frames of a journal that hold records of a range of offsets."""
    files = segments(folder)
    for place, (_, path) in enumerate(files):
        until = files[place + 1][0] if place + 1 < len(files) else end
        if until <= start:
            continue
        for frame in frames(path):
            if frame.first >= min(end, until):  # what failed, where the next file goes on
                break
            if frame.end > start:
                yield frame


class Segment:
    """A file that frames are added to."""

    def __init__(self, folder: Path, first: int) -> None:
        self.path = folder / f"{first:020d}{_SUFFIX}"
        self._file: BinaryIO = self.path.open("wb")
        try:
            _sync_folder(folder)
        except OSError:
            self._file.close()
            raise

    def add(self, first: int, records: pa.Table) -> int:
        """Write records, and return once they survive a power cut; returns the bytes of the file.

        Raises:
            OSError: They cannot be written.
        """
        data = BytesIO()
        with pa.ipc.new_stream(data, records.schema, options=_WRITE) as stream:
            stream.write_table(records)
        body, before = data.getvalue(), self._file.tell()
        try:
            self._file.write(_HEAD.pack(len(body), crc32(body), first, records.num_rows) + body)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):
                os.truncate(self.path, before)
            raise
        return self._file.tell()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_WRITE = pa.ipc.IpcWriteOptions(compression="lz4")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

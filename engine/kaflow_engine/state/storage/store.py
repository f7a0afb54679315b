"""File stores for logs and snapshots: named files that are immutable or replaced as a whole."""

import errno
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Protocol

from kaflow_engine.errors import StateError


class NameTaken(StateError):
    """A name that was to be created exists."""


class Damaged(StateError):
    """Something stored is missing, torn, altered, or belongs elsewhere."""


class NameMissing(Damaged):
    """A name that was to be read does not exist."""


class Foreign(Damaged):
    """Something stored belongs to another state, or to another generation of it."""


class Store(Protocol):
    """Named files; names are relative, with `/`. What a call wrote survives a power cut."""

    def create(self, name: str, data: bytes | memoryview) -> None:
        """Write a new file, whole or not at all; NameTaken if the name exists."""
        ...

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write or replace a file, whole or not at all."""
        ...

    def get(self, name: str) -> bytes:
        """Return the content; NameMissing if there is none."""
        ...

    def exists(self, name: str) -> bool:
        """Tell whether the name exists."""
        ...

    def list(self, prefix: str) -> list[str]:
        """Return all names that start with a prefix, sorted."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file; nothing happens if there is none."""
        ...

    def upload(self, path: Path, name: str) -> str:
        """Write or replace a file with the content of a local one; return its sha256."""
        ...

    def download(self, name: str, path: Path) -> str:
        """Write a local file with the content of a stored one; return its sha256."""
        ...

    def copy(self, source: str, name: str) -> None:
        """Give the content of one name a second name, cheaply."""
        ...


class LocalStore:
    """A store in a local directory."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __repr__(self) -> str:
        return f"LocalStore({str(self._root)!r})"

    def create(self, name: str, data: bytes | memoryview) -> None:
        """Write a new file, whole or not at all; NameTaken if the name exists."""
        with self._beside(name) as (fresh, target):
            _write(fresh, data)
            try:
                os.link(fresh, target)  # fails if the name exists; a rename would not
            except FileExistsError as error:
                raise NameTaken(f"'{name}' exists already in {self._root}") from error

    def put(self, name: str, data: bytes | memoryview) -> None:
        """Write or replace a file, whole or not at all."""
        with self._beside(name) as (fresh, target):
            _write(fresh, data)
            fresh.replace(target)

    def get(self, name: str) -> bytes:
        """Return the content; NameMissing if there is none."""
        with self._telling("read", name):
            return self.path(name).read_bytes()

    def exists(self, name: str) -> bool:
        """Tell whether the name exists."""
        return self.path(name).is_file()

    def list(self, prefix: str) -> list[str]:
        """Return all names that start with a prefix, sorted."""
        top = self.path(prefix.rpartition("/")[0])
        names = [
            (Path(folder) / file).relative_to(self._root).as_posix()
            for folder, _, files in os.walk(top)
            for file in files
            if not _is_fresh(file)
        ]
        return sorted(name for name in names if name.startswith(prefix))

    def delete(self, name: str) -> None:
        """Remove a file, and its directory once that is empty; nothing happens if there is none."""
        path = self.path(name)
        with self._telling("delete", name):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty, or gone
            folder = path.parent
            if folder != self._root and all(map(_is_fresh, os.listdir(folder))):
                shutil.rmtree(folder)  # only what a crashed writer left

    def upload(self, path: Path, name: str) -> str:
        """Write or replace a file with the content of a local one; return its sha256."""
        with self._beside(name) as (fresh, target):
            digest = _copy(path, fresh)
            fresh.replace(target)
        return digest

    def download(self, name: str, path: Path) -> str:
        """Write a local file with the content of a stored one; return its sha256."""
        with self._telling("read", name):
            return _copy(self.path(name), path)

    def copy(self, source: str, name: str) -> None:
        """Give the content of one name a second name: a hard link where there can be one."""
        with self._beside(name) as (fresh, target):
            try:
                os.link(self.path(source), fresh)
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV):
                    raise
                _copy(self.path(source), fresh)
            fresh.replace(target)
            fresh.unlink(missing_ok=True)  # replacing a link by another to the same file does not

    def path(self, name: str) -> Path:
        """Return where a name is on the disk."""
        return self._root / name

    @contextmanager
    def _beside(self, name: str) -> Generator[tuple[Path, Path]]:
        """Give a path to write and the one to move it to; then make the directory durable."""
        target = self.path(name)
        fresh = target.with_name(f".{target.name}.{token_hex(6)}.fresh")
        with self._telling("write", name):
            _make(target.parent)
            try:
                yield fresh, target
            finally:
                fresh.unlink(missing_ok=True)
            _sync(target.parent)

    @contextmanager
    def _telling(self, verb: str, name: str) -> Generator[None]:
        try:
            yield
        except FileNotFoundError as error:
            hint = "restore it from a backup; nothing but kaflow may delete files here"
            raise NameMissing(f"'{name}' is missing in {self._root}", hint=hint) from error
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise StateError(
                f"cannot {verb} '{name}' in {self._root}: {reason}",
                hint="check free space, permissions and the mount of this directory",
            ) from error


def _is_fresh(file: str) -> bool:
    return file.startswith(".") and file.endswith(".fresh")


def _write(path: Path, data: bytes | memoryview) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _copy(source: Path, target: Path) -> str:
    digest = sha256()
    with source.open("rb") as read, target.open("wb") as write:
        while block := read.read(1 << 20):
            digest.update(block)
            write.write(block)
        write.flush()
        os.fsync(write.fileno())
    return digest.hexdigest()


def _make(folder: Path) -> None:
    if folder.is_dir():
        return
    _make(folder.parent)
    # whoever may enter the state directory decides who may enter its folders
    folder.mkdir(mode=folder.parent.stat().st_mode & 0o777, exist_ok=True)
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

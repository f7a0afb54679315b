"""Checkpoints of a pipeline's state in a bucket, from which another machine can go on.

`<pipeline>/head.json` lists what counts, and is only replaced by who has read it last, so that two
runs cannot interleave. `<pipeline>/<state id>/` holds a manifest for each checkpoint, and the files
that manifests name by their sha256: written once, never altered, shared by checkpoints.
"""

import base64
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from kaflow_engine.state.copies.snapshots import KEEP, snapshot_files
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.bucket import Bucket, BucketSettings, ObjectChanged
from kaflow_engine.state.storage.store import Damaged, LocalStore

_SETTLED = ("plans/", "sources/")
"""Folders of files that belong to no batch."""
_SMALL = 16 << 10
"""Files up to so many bytes stand in the manifest itself."""
_AT_ONCE = 8

Tell = Callable[[int, int], None]
"""Takes bytes done, and bytes in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of a state directory."""

    name: str
    bytes: int
    sha256: str
    content: str | None = None
    """Base64, of a small file; None: an object of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A checkpoint as the head lists it."""

    batch: int
    created_ms: int
    manifest: str
    sha256: str
    """Of the manifest."""
    bytes: int
    """Of all files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The files of a checkpoint."""

    state_id: str
    generation: int
    batch: int
    files: tuple[StoredFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What counts in the bucket."""

    epoch: int
    """Of the run that may write here."""
    state_id: str
    generation: int
    files: tuple[StoredFile, ...]
    """What is not of one batch: the record of the state, its plans, its histories."""
    checkpoints: tuple[Listed, ...] = ()
    """Newest first."""

    @property
    def ref(self) -> StateRef:
        """The state that checkpoints are of."""
        return StateRef(self.state_id, self.generation)


T = TypeVar("T", Head, Manifest)


class Checkpoints:
    """The checkpoints of one pipeline."""

    def __init__(self, settings: BucketSettings, pipeline: str) -> None:
        self.bucket = Bucket(
            replace(settings, prefix=f"{settings.prefix.strip('/')}/{pipeline}".lstrip("/"))
        )
        self.pipeline = pipeline
        self._read: dict[str, Manifest] = {}
        self._there: set[str] = set()  # objects of the state, when it was last looked

    def head(self) -> tuple[Head, str] | None:
        """Return the head and its tag; None before the first.

        Raises:
            Damaged: It cannot be read.
            BucketAway: The store does not answer.
        """
        found = self.bucket.get("head.json")
        return found and (_parse("head.json", found[0], Head), found[1])

    def put_head(self, head: Head, replacing: str | None) -> str:
        """Replace the head that has a tag; return the tag of the new one.

        Raises:
            ObjectChanged: Another run has replaced it.
        """
        return self.bucket.put("head.json", _adapter(Head).dump_json(head), replacing)

    def upload(self, store: LocalStore, ref: StateRef, batch: int, created_ms: int) -> Listed:
        """Write a local snapshot and what goes with it; it counts once a head lists it.

        Files that are there already, as most are, are not written again.

        Args:
            store: The state directory.
            ref: The state.
            batch: The batch of the snapshot.
            created_ms: Epoch milliseconds.

        Raises:
            Damaged: The snapshot is gone, or was altered.
            BucketAway: The store does not answer.
        """
        files = list(_files_of(store, ref, batch))
        there = self.bucket.sizes(f"{ref.state_id}/")  # someone may have tidied up
        missing = [f for f in files if f.content is None and there.get(_object(ref, f)) != f.bytes]
        with ThreadPoolExecutor(2) as threads:  # each transfer has threads of its own
            for done in [
                threads.submit(self.bucket.upload, store.path(f.name), _object(ref, f))
                for f in missing
            ]:
                done.result()
        manifest = Manifest(
            state_id=ref.state_id, generation=ref.generation, batch=batch, files=tuple(files)
        )
        data = _adapter(Manifest).dump_json(manifest)
        digest = sha256(data).hexdigest()
        name = f"{ref.state_id}/checkpoints/{ref.generation}-{batch}-{digest[:12]}.json"
        try:
            self.bucket.put(name, data, None)
        except ObjectChanged:
            pass  # its name says that it is the same
        self._read[name] = manifest
        self._there = {*there, name, *(_object(ref, f) for f in missing)}
        return Listed(
            batch=batch,
            created_ms=created_ms,
            manifest=name,
            sha256=digest,
            bytes=sum(f.bytes for f in files),
        )

    def load(self, listed: Listed) -> Manifest:
        """Return the manifest of a checkpoint; Damaged if it is missing or altered."""
        if listed.manifest in self._read:
            return self._read[listed.manifest]
        found = self.bucket.get(listed.manifest)
        if found is None or sha256(found[0]).hexdigest() != listed.sha256:
            raise _damaged(listed.manifest)
        self._read[listed.manifest] = _parse(listed.manifest, found[0], Manifest)
        return self._read[listed.manifest]

    def check(self, listed: Listed, tell: Tell, scratch: Path) -> None:
        """Read all files of a checkpoint.

        Args:
            listed: The checkpoint.
            tell: Called with progress.
            scratch: A directory for one file at a time.

        Raises:
            Damaged: One is missing or altered; says which.
        """
        manifest, done = self.load(listed), 0
        for file in manifest.files:
            if file.content is None:
                self._download(manifest, file, scratch / "file")
            elif sha256(_content(file)).hexdigest() != file.sha256:
                raise _damaged(file.name)
            done += file.bytes
            tell(done, listed.bytes)

    def restore(self, listed: Listed, store: LocalStore, tell: Tell) -> None:
        """Write the files of a checkpoint into a state directory that has no state yet.

        Raises:
            Damaged: One is missing or altered; says which.
            BucketAway: The store does not answer.
        """
        manifest, done = self.load(listed), 0
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            for size in threads.map(partial(self._fetch, manifest, store), manifest.files):
                done += size
                tell(done, listed.bytes)

    def prune(self, head: Head) -> None:
        """Remove what no checkpoint of a head names, behind an upload; of other states nothing."""
        kept = {listed.manifest for listed in head.checkpoints}
        for listed in head.checkpoints:
            kept |= {_object(head.ref, file) for file in self.load(listed).files}
        self.bucket.delete(self._there - kept)
        self._read = {name: read for name, read in self._read.items() if name in kept}

    def drop(self) -> None:
        """Remove all of the pipeline's checkpoints, what counts first."""
        self.bucket.delete(["head.json"])
        self.bucket.delete(list(self.bucket.sizes("")))

    def _fetch(self, manifest: Manifest, store: LocalStore, file: StoredFile) -> int:
        if file.content is None:
            path = store.path(file.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._download(manifest, file, path)
        else:
            write_small(store, file)
        return file.bytes

    def _download(self, manifest: Manifest, file: StoredFile, path: Path) -> None:
        ref = StateRef(manifest.state_id, manifest.generation)
        if self.bucket.download(_object(ref, file), path) != file.sha256:
            raise _damaged(f"{_object(ref, file)}' ('{file.name}')")


def settled_files(store: LocalStore) -> tuple[StoredFile, ...]:
    """Return the files of a state directory that belong to no batch, small as they are."""
    names = [name for name in store.list("") if "/" not in name or name.startswith(_SETTLED)]
    return tuple(_small(name, store.get(name)) for name in names if name.endswith(".json"))


def write_small(store: LocalStore, file: StoredFile) -> None:
    """Write a file whose content stands in the manifest; Damaged if it was altered."""
    data = _content(file)
    if sha256(data).hexdigest() != file.sha256:
        raise _damaged(file.name)
    store.put(file.name, data)


def kept(checkpoints: tuple[Listed, ...], newest: Listed) -> tuple[Listed, ...]:
    """Return the checkpoints to keep once there is another one."""
    return (newest, *(each for each in checkpoints if each.batch != newest.batch))[:KEEP]


def _files_of(store: LocalStore, ref: StateRef, batch: int) -> Iterator[StoredFile]:
    for name in (f"batches/{batch}.json", f"commits/{batch}.json"):
        yield _small(name, store.get(name))
    for name, size, digest in snapshot_files(store, ref, batch):
        if size > _SMALL:
            yield StoredFile(name=name, bytes=size, sha256=digest)
        else:
            yield _small(name, store.get(name))


def _small(name: str, data: bytes) -> StoredFile:
    content = base64.b64encode(data).decode()
    digest = sha256(data).hexdigest()
    return StoredFile(name=name, bytes=len(data), sha256=digest, content=content)


def _content(file: StoredFile) -> bytes:
    return base64.b64decode(file.content or "")


def _object(ref: StateRef, file: StoredFile) -> str:
    return f"{ref.state_id}/files/{file.sha256}"


def _parse(name: str, data: bytes, kind: type[T]) -> T:
    try:
        return cast(T, _adapter(kind).validate_json(data))
    except ValidationError as error:
        raise _damaged(name) from error


def _damaged(name: str) -> Damaged:
    return Damaged(
        f"'{name}' of a checkpoint is missing or damaged",
        hint="an older one is used where there is one; `kaflow state checkpoints` lists them",
    )


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

"""Snapshots: the RocksDB files of all partitions after one batch, in a store.

`snapshots/<N>/<partition>/` holds the files of one partition and, written after them, its manifest;
`snapshots/<N>/manifest.json`, written when every partition is there, makes the snapshot count.
"""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from kaflow_engine.state.copies.rocks import RocksCopy
from kaflow_engine.state.copies.rocks_open import open_copy
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import Damaged, Foreign, NameMissing, Store

KEEP = 2
"""How many snapshots are kept, each with all that came after the older one."""

_TAIL = 8 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """One RocksDB file of a snapshot."""

    name: str
    bytes: int
    sha256: str
    tail: str
    """Hash of the end of the file, where a table names the session that wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionManifest:
    """The files of one partition."""

    state_id: str
    generation: int
    batch: int
    partition: str
    files: tuple[SnapshotFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotManifest:
    """A complete snapshot."""

    state_id: str
    generation: int
    batch: int
    """The state is as it was after this batch."""
    created_ms: int
    partitions: dict[str, str]
    """State partition to the sha256 of its manifest."""


M = TypeVar("M", PartitionManifest, SnapshotManifest)


def take_snapshot(store: Store, ref: StateRef, partition: str, copy: RocksCopy) -> str:
    """Store the files of a copy as they are after the batch it stands at.

    Files that the newest snapshot has are not written again. Taking it again is fine.

    Args:
        store: The snapshot store.
        ref: The state.
        partition: State partition, `<step>-<p>`.
        copy: Its copy, open.

    Returns:
        What `complete_snapshot` wants for this partition.
    """
    batch = copy.applied or 0
    copy.advance(batch, store=True)
    scratch = copy.path.with_name(f"{copy.path.name}.checkpoint")
    shutil.rmtree(scratch, ignore_errors=True)
    copy.checkpoint(scratch)
    try:
        known = _known_files(store, ref, batch, partition)
        files = tuple(
            _store_file(store, path, f"snapshots/{batch}/{partition}/{path.name}", known)
            for path in sorted(scratch.iterdir())
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    manifest = PartitionManifest(
        state_id=ref.state_id,
        generation=ref.generation,
        batch=batch,
        partition=partition,
        files=files,
    )
    data = _adapter(PartitionManifest).dump_json(manifest)
    store.put(f"snapshots/{batch}/{partition}/manifest.json", data)
    return sha256(data).hexdigest()


def complete_snapshot(
    store: Store, ref: StateRef, batch: int, created_ms: int, partitions: Mapping[str, str]
) -> None:
    """Make a snapshot count, once `take_snapshot` has run for every partition of the plan.

    Args:
        store: The snapshot store.
        ref: The state.
        batch: The batch after which the snapshot was taken, the same for all partitions.
        created_ms: Epoch milliseconds.
        partitions: State partition to what `take_snapshot` returned for it.
    """
    manifest = SnapshotManifest(
        state_id=ref.state_id,
        generation=ref.generation,
        batch=batch,
        created_ms=created_ms,
        partitions=dict(partitions),
    )
    data = _adapter(SnapshotManifest).dump_json(manifest)
    store.put(_manifest_name(batch), data)


def snapshot_batches(store: Store) -> list[int]:
    """Return the batches of all complete snapshots, newest first, sound or not."""
    names = (name.split("/") for name in store.list("snapshots/"))
    found = {int(n[1]) for n in names if n[2:] == ["manifest.json"] and n[1].isdecimal()}
    return sorted(found, reverse=True)


def load_snapshot(store: Store, ref: StateRef, batch: int) -> SnapshotManifest:
    """Return the manifest of a snapshot; Damaged if it is not sound or of another generation."""
    name = _manifest_name(batch)
    manifest = _parse(name, store.get(name), SnapshotManifest)
    if StateRef(manifest.state_id, manifest.generation) != ref or manifest.batch != batch:
        raise Foreign(f"snapshot {batch} belongs to another state or generation")
    return manifest


def snapshot_files(store: Store, ref: StateRef, batch: int) -> Iterator[tuple[str, int, str]]:
    """Yield name, bytes and sha256 of every file of a complete snapshot, its manifests last.

    Raises:
        Damaged: A manifest is missing or altered.
    """
    folder, manifests = f"snapshots/{batch}", [_manifest_name(batch)]
    for partition, digest in load_snapshot(store, ref, batch).partitions.items():
        name = f"{folder}/{partition}/manifest.json"
        manifests.insert(0, name)
        data = store.get(name)
        if sha256(data).hexdigest() != digest:
            raise _damaged(name)
        for file in _parse(name, data, PartitionManifest).files:
            yield f"{folder}/{partition}/{file.name}", file.bytes, file.sha256
    for name in manifests:
        data = store.get(name)
        yield name, len(data), sha256(data).hexdigest()


def restore(store: Store, ref: StateRef, batch: int, partition: str, path: Path) -> None:
    """Build a copy from a snapshot; a partition that the plan did not have then starts empty.

    Args:
        store: The snapshot store.
        ref: The state.
        batch: Of a complete snapshot.
        partition: State partition, `<step>-<p>`.
        path: Directory of the copy; must not exist.

    Raises:
        Damaged: A file of the snapshot is missing, torn or altered.
    """
    digest = load_snapshot(store, ref, batch).partitions.get(partition)
    if digest is not None:
        folder = f"snapshots/{batch}/{partition}"
        data = store.get(f"{folder}/manifest.json")
        if sha256(data).hexdigest() != digest:
            raise _damaged(f"{folder}/manifest.json")
        path.mkdir(parents=True)
        for file in _parse(f"{folder}/manifest.json", data, PartitionManifest).files:
            if store.download(f"{folder}/{file.name}", path / file.name) != file.sha256:
                raise _damaged(f"{folder}/{file.name}")
    with open_copy(path, ref) as copy:
        if digest is None:
            copy.advance(batch, store=True)
        if copy.foreign or copy.applied != batch:
            raise Damaged(f"snapshot {batch} of partition '{partition}' holds another state")


def prune_snapshots(store: Store, log: BatchLog, ref: StateRef, keep: int = KEEP) -> int | None:
    """Keep the newest snapshots, and of the log what came after the oldest of them.

    Returns:
        The batch of the oldest snapshot kept; None, and nothing is removed, while there are fewer.
    """
    kept = [batch for batch in snapshot_batches(store) if _is_sound(store, ref, batch)][:keep]
    if len(kept) < keep:
        return None
    oldest = kept[-1]
    names = [
        name
        for name in store.list("snapshots/")
        if name.split("/")[1].isdecimal() and int(name.split("/")[1]) < oldest
    ]
    # Manifests first: what is half removed must not count as a snapshot.
    for name in sorted(names, key=lambda name: (not name.endswith("/manifest.json"), len(name))):
        store.delete(name)
    log.prune(oldest)
    return oldest


def _known_files(
    store: Store, ref: StateRef, batch: int, partition: str
) -> dict[tuple[str, int, str], tuple[str, str]]:
    """Return (name, bytes, tail) to (stored name, sha256) of the newest earlier snapshot."""
    for earlier in snapshot_batches(store):
        if earlier < batch and _is_sound(store, ref, earlier):
            folder = f"snapshots/{earlier}/{partition}"
            try:
                name = f"{folder}/manifest.json"
                files = _parse(name, store.get(name), PartitionManifest).files
            except Damaged:
                return {}
            return {(f.name, f.bytes, f.tail): (f"{folder}/{f.name}", f.sha256) for f in files}
    return {}


def _store_file(
    store: Store,
    path: Path,
    name: str,
    known: Mapping[tuple[str, int, str], tuple[str, str]],
) -> SnapshotFile:
    size, tail = path.stat().st_size, _tail(path)
    stored = known.get((path.name, size, tail)) if path.suffix == ".sst" else None
    digest = None
    if stored:
        try:
            store.copy(stored[0], name)
            digest = stored[1]
        except NameMissing:
            pass  # pruned by hand; then it is written again
    if digest is None:
        digest = store.upload(path, name)
    return SnapshotFile(name=path.name, bytes=size, sha256=digest, tail=tail)


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - _TAIL, 0))
        return sha256(file.read()).hexdigest()


def _is_sound(store: Store, ref: StateRef, batch: int) -> bool:
    try:
        load_snapshot(store, ref, batch)
    except Damaged:
        return False
    return True


def _manifest_name(batch: int) -> str:
    return f"snapshots/{batch}/manifest.json"


def _parse(name: str, data: bytes, kind: type[M]) -> M:
    try:
        return cast(M, _adapter(kind).validate_json(data))
    except ValidationError as error:
        raise _damaged(name) from error


def _damaged(name: str) -> Damaged:
    return Damaged(f"'{name}' is damaged", hint="an older snapshot is used where there is one")


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

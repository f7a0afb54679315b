"""A source of files: found by looking at a folder, each read once."""

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from kaflow_engine.connectors.files.source.contents import (
    BROKEN,
    Form,
    count,
    is_away,
    values,
)
from kaflow_engine.connectors.files.source.listed import Listed
from kaflow_engine.connectors.files.source.seen import Seen, Storage, base_of
from kaflow_engine.connectors.files.source.storage import storage_of
from kaflow_engine.connectors.sources.catalogue import Catalogue
from kaflow_engine.connectors.sources.contract import KEPT, SourcePlace, StartPolicy
from kaflow_engine.connectors.sources.records import record_batch, table_of
from kaflow_engine.errors import SourceAway, SourceUnfit
from kaflow_engine.flow.origins.files import FilesParams

_CHEAP_S = 0.05
_SHARE = 10
"""A look that takes longer than that is repeated after so many times as long at the earliest:
batches go on with what was found."""

LOGGER = logging.getLogger("kaflow.files")


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesRead:
    """A range of records, and the files that have them; see `RangeRead`."""

    source: str
    storage: Storage
    files: tuple[Listed, ...]
    start: int
    end: int

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """Yield the records.

        Raises:
            SourceUnfit: A file is not what it was when it was found.
        """
        for file in self.files:
            yield from self._of(file)

    def _of(self, file: Listed) -> Iterator[pa.RecordBatch]:
        first = max(self.start, file.first)
        end = min(self.end, file.end)
        if file.unreadable is not None:
            stamps = [file.timestamp]
            yield record_batch(self.source, first, [None], stamps, file.path, file.unreadable)
            return
        require_unchanged(self.source, self.storage, file)
        at = first
        inside = (first - file.first, end - file.first)
        form = Form(format=file.format, header=file.header)
        try:
            for some in values(self.storage, file.path, form, *inside, file.marks):
                stamps = pa.repeat(pa.scalar(file.timestamp, pa.int64()), len(some))
                yield record_batch(self.source, at, some, stamps, file.path)
                at += len(some)
        except BROKEN as error:
            require_unchanged(self.source, self.storage, file)
            if is_away(error):
                raise SourceAway(f"'{file.path}' cannot be read: {error}") from error
            raise changed(self.source, file, f"cannot be read: {error}") from error
        require_unchanged(self.source, self.storage, file)
        if at != end:
            raise changed(self.source, file, f"has no record {at - file.first + 1}")


class FilesSource:
    """Files in a folder; their records are one partition.

    Args:
        params: Its settings.
        place: Where what is found is kept.
        once: Whether it ends with what is there, as soon as no one may still write to any of it.
    """

    def __init__(self, params: FilesParams, place: SourcePlace, once: bool = False) -> None:
        self._params, self._place, self._once = params, place, once
        self._storage = storage_of(params.path, place.connection)
        self._catalogue = Catalogue(place.store, f"{KEPT}/{place.name}", Listed, "file")
        self._young: dict[str, tuple[Seen, float]] = {}
        self._warned: set[str] = set()
        self._looked = self._cost = 0.0
        self._all_listed = False
        """Whether all files of the last look are in the catalogue."""

    @property
    def finite(self) -> bool:
        """Whether it ends with what is there."""
        return self._once

    @property
    def bounded(self) -> bool:
        """Whether it ends with what is there, and all of that was found."""
        return self._once and self._all_listed

    def partitions(self) -> Sequence[int]:
        """Return the one there is."""
        return (0,)

    def latest(self) -> Mapping[int, int]:
        """Look at the folder; return the end of what is there, and whole."""
        found: list[Listed] = []
        end, began = self._catalogue.end, time.monotonic()
        if self._cost > _CHEAP_S and began - self._looked < _SHARE * self._cost:
            return {0: end}
        there = self._storage.look(self._params.path)
        self._looked = time.monotonic()
        self._cost = self._looked - began
        for seen in there:
            known = self._catalogue.by_name.get(seen.path)
            if known is not None:
                self._warn_of_change(known, seen)
            elif self._is_whole(seen):
                listed = self._listed(seen, end)
                if listed is not None:
                    found.append(listed)
                    end = listed.end
        self._catalogue.add(found)
        self._all_listed = all(seen.path in self._catalogue.by_name for seen in there)
        if self._once and not self._catalogue.entries and not there:
            self._warn_of_none()
        return {0: end}

    def start(self, policy: StartPolicy) -> Mapping[int, int]:
        """Return where the files begin, end, or are as late as a time."""
        end = self.latest()
        if policy == "earliest":
            return {0: 0}
        if policy == "latest":
            return end
        later = (f.first for f in self._catalogue.entries if f.timestamp >= policy)
        return {0: min(later, default=end[0])}

    def reads(self, start: Mapping[int, int], end: Mapping[int, int]) -> Sequence[FilesRead]:
        """Return what tasks read a range with.

        Raises:
            SourceUnfit: A file is gone or another one, or was never found.
        """
        first, last = start[0], end[0]
        if first >= last:
            return ()
        if last > self._catalogue.end:
            raise SourceUnfit(
                f"source '{self._place.name}' has found files up to offset {self._catalogue.end}, "
                f"and a batch reads up to {last}",
                hint="the catalogue of this state is older than its batches: restore the whole "
                "directory from one backup",
            )
        files = tuple(self._catalogue.between(first, last))
        for file in files:
            if file.unreadable is None:
                require_unchanged(self._place.name, self._storage, file)
        read = FilesRead(
            source=self._place.name, storage=self._storage, files=files, start=first, end=last
        )
        return (read,)

    def found(self, start: Mapping[int, int], end: Mapping[int, int]) -> Any:
        """Return the files that have records of a range."""
        return self._catalogue.dump(start[0], end[0])

    def know(self, found: Any) -> None:
        """Keep files that another machine has found.

        Raises:
            Damaged: They do not follow those that are known.
        """
        self._catalogue.know(found)

    def forget(self, before: Mapping[int, int], now: int) -> None:
        """Do nothing: it keeps no records."""

    def read(self, start: Mapping[int, int], end: Mapping[int, int]) -> pa.Table:
        """Return the records of a range."""
        return table_of(self.reads(start, end))

    def _is_whole(self, seen: Seen) -> bool:
        """Tell whether nothing has written to a file for long enough, by its own time or by ours:
        the clock of its host may be another one."""
        now = time.monotonic()
        before, since = self._young.get(seen.path, (seen, now))
        if before != seen:
            since = now
        self._young[seen.path] = (seen, since)
        age = self._place.clock() - seen.changed // 1_000_000
        waited = (now - since) * 1000
        if max(age, waited) < self._params.settle:
            return False
        del self._young[seen.path]
        return True

    def _listed(self, seen: Seen, first: int) -> Listed | None:
        """Look through a file; None: someone still writes to it, or has taken it away.

        Raises:
            SourceAway: It cannot be read now.
        """
        form = Form(format=self._params.format, header=self._params.header)
        file = Listed(
            path=seen.path,
            size=seen.size,
            changed=seen.changed,
            first=first,
            records=1,
            format=form.format,
            header=form.header,
        )
        try:
            found = count(self._storage, seen.path, form)
            file = replace(file, records=found.records, marks=found.marks)
        except BROKEN as error:
            said = str(error).partition("\n")[0]
            if self._storage.state_of(seen.path) == seen:
                if is_away(error):
                    raise SourceAway(f"'{seen.path}' cannot be read: {said}") from error
                LOGGER.warning("'%s' cannot be read, and is a dead letter: %s", seen.path, said)
            file = replace(file, unreadable=f"{seen.path} cannot be read: {said}")
        return file if self._storage.state_of(seen.path) == seen else None

    def _warn_of_none(self) -> None:
        path, folder = self._params.path, base_of(self._params.path)
        if path not in self._warned:
            self._warned.add(path)
            what = "" if path == folder else f" is named by '{path}'"
            LOGGER.warning("no file in '%s'%s: the phase ends without rows", folder, what)

    def _warn_of_change(self, known: Listed, seen: Seen) -> None:
        same = (known.size, known.changed) == (seen.size, seen.changed)
        if not same and seen.path not in self._warned:
            self._warned.add(seen.path)
            LOGGER.warning(
                "'%s' has changed since it was found; a file is read once: write another one",
                seen.path,
            )


def require_unchanged(source: str, storage: Storage, file: Listed) -> None:
    """Check that a file is the one that was found.

    Raises:
        SourceUnfit: It is gone, or another one.
    """
    try:
        now = storage.state_of(file.path)
    except OSError as error:
        raise SourceAway(f"'{file.path}' cannot be read: {error}") from error
    if now is None:
        raise changed(source, file, "is gone")
    if now.size != file.size:
        raise changed(source, file, f"has {now.size} bytes, and had {file.size}")
    if now.changed != file.changed:
        raise changed(source, file, "was written to since it was found")


def changed(source: str, file: Listed, what: str) -> SourceUnfit:
    """Return the error for a file that is not what it was."""
    return SourceUnfit(
        f"source '{source}': {file.path} {what}",
        hint="bring the file back as it was; a pipeline with a new `id:` reads what is there now",
    )

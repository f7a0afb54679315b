"""The catalogue of a source: what it has found, each with the offsets of its records.

Entries are written before a batch uses them, and never change: the same offset is the same record
in every later run.
"""

from collections.abc import Mapping, Sequence
from types import GenericAlias
from typing import Any, Generic, Protocol, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from kaflow_engine.state.storage.store import Damaged, Store

_ENTRIES_PER_FILE = 256
"""Entries after which another file begins."""


class Entry(Protocol):
    """Records of a source that belong together, such as those of a file."""

    @property
    def called(self) -> str:
        """What no other entry is called."""
        ...

    @property
    def first(self) -> int:
        """The offset of its first record."""
        ...

    @property
    def end(self) -> int:
        """The offset behind its last record."""
        ...


E = TypeVar("E", bound=Entry)


class Catalogue(Generic[E]):
    """What a source has found so far.

    Args:
        store: The state directory.
        folder: Where it is kept there.
        kind: The class of its entries, a dataclass.
        noun: What an entry is, as errors say it.
    """

    def __init__(self, store: Store, folder: str, kind: type[E], noun: str) -> None:
        self._store, self._folder, self._noun = store, folder, noun
        self._adapter: TypeAdapter[list[E]] = TypeAdapter(
            cast(type[list[E]], GenericAlias(list, kind))
        )
        pages = store.list(f"{folder}/")
        self._pages, self._last = len(pages), list[E]()
        self._entries: list[E] = []
        for page in pages:
            self._last = self._read(page)
            self._entries += self._last
        self._by_name = {entry.called: entry for entry in self._entries}

    @property
    def end(self) -> int:
        """The offset of the next record to come."""
        return self._entries[-1].end if self._entries else 0

    @property
    def entries(self) -> Sequence[E]:
        """All of them, in the order of their offsets."""
        return self._entries

    @property
    def by_name(self) -> Mapping[str, E]:
        """All of them, by what they are called."""
        return self._by_name

    def add(self, entries: Sequence[E]) -> None:
        """Keep what was found, in the order of its offsets.

        It fills up the last file, which is replaced as a whole: a reader finds it without, or
        with all of it.
        """
        if not entries:
            return
        if not self._pages or len(self._last) >= _ENTRIES_PER_FILE:
            self._pages, self._last = self._pages + 1, []
        self._last = [*self._last, *entries]
        page = f"{self._folder}/{self._pages:08d}.json"
        self._store.put(page, self._adapter.dump_json(self._last))
        self._entries += entries
        self._by_name |= {entry.called: entry for entry in entries}

    def know(self, found: Any) -> None:
        """Add entries as `dump` gave them, without those that are known.

        Raises:
            Damaged: They are not those that are known, or do not follow them.
        """
        entries = self._adapter.validate_python(found)
        for entry in entries:
            if entry.first < self.end and self._by_name.get(entry.called) != entry:
                raise Damaged(
                    f"'{self._folder}' has another {self._noun} than '{entry.called}' at offset "
                    f"{entry.first}",
                    hint="restore the whole directory from one backup",
                )
        fresh = [entry for entry in entries if entry.first >= self.end]
        if fresh and fresh[0].first != self.end:
            raise Damaged(
                f"'{self._folder}' ends at offset {self.end}, and a batch reads "
                f"'{fresh[0].called}' from offset {fresh[0].first}",
                hint="restore the whole directory from one backup",
            )
        self.add(fresh)

    def dump(self, start: int, end: int) -> Any:
        """Return the entries that have records of a range, as data for JSON."""
        return self._adapter.dump_python(self.between(start, end), mode="json")

    def between(self, start: int, end: int) -> list[E]:
        """Return the entries that have records of a range."""
        return [entry for entry in self._entries if entry.first < end and start < entry.end]

    def _read(self, page: str) -> list[E]:
        try:
            return self._adapter.validate_json(self._store.get(page))
        except ValidationError as error:
            raise Damaged(f"'{page}' is damaged", hint="restore this file from a backup") from error

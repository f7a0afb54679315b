"""The catalogue of a source of files: each file once, with the offsets of its records.

Entries are written before a batch uses them, and never change: the same offset is the same record
in every later run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from kaflow_engine.connectors.sources.contract import KEPT
from kaflow_engine.state.storage.store import Damaged, Store

_PAGE = 256
"""Files after which another page begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A file whose records have offsets."""

    path: str
    size: int
    changed: int
    """Epoch nanoseconds."""
    first: int
    """The offset of its first record."""
    records: int
    format: Literal["parquet", "json", "csv"]
    header: bool = False
    marks: tuple[int, ...] = ()
    """Where in the file records begin, every so many of them; bytes."""
    unreadable: str | None = None
    """Why it cannot be read: it is one record, which says so."""

    @property
    def end(self) -> int:
        """The offset behind its last record."""
        return self.first + self.records

    @property
    def timestamp(self) -> int:
        """Of its records, epoch milliseconds."""
        return self.changed // 1_000_000


class Catalogue:
    """What a source has found so far.

    Args:
        store: The state directory.
        name: Of the source.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._folder = store, f"{KEPT}/{name}"
        pages = store.list(f"{self._folder}/")
        self._pages, self._last = len(pages), list[Listed]()
        self._files: list[Listed] = []
        for page in pages:
            self._last = _read(store, page)
            self._files += self._last
        self._by_path = {file.path: file for file in self._files}

    @property
    def end(self) -> int:
        """The offset of the next record to come."""
        return self._files[-1].end if self._files else 0

    @property
    def by_path(self) -> Mapping[str, Listed]:
        """All files."""
        return self._by_path

    def add(self, files: Sequence[Listed]) -> None:
        """Keep files that were found, in the order of their offsets.

        They fill up the last page, which is replaced as a whole: a reader finds it without them, or
        with all of them.
        """
        if not files:
            return
        if not self._pages or len(self._last) >= _PAGE:
            self._pages, self._last = self._pages + 1, []
        self._last = [*self._last, *files]
        page = f"{self._folder}/{self._pages:08d}.json"
        self._store.put(page, _adapter().dump_json(self._last))
        self._files += files
        self._by_path |= {file.path: file for file in files}

    def know(self, found: Any) -> None:
        """Add files as `dump` gave them, without those that are known.

        Raises:
            Damaged: They are not those that are known, or do not follow them.
        """
        files: list[Listed] = _adapter().validate_python(found)
        for file in files:
            if file.first < self.end and self._by_path.get(file.path) != file:
                raise Damaged(
                    f"'{self._folder}' has another file than '{file.path}' at offset {file.first}",
                    hint="restore the whole directory from one backup",
                )
        fresh = [file for file in files if file.first >= self.end]
        if fresh and fresh[0].first != self.end:
            raise Damaged(
                f"'{self._folder}' ends at offset {self.end}, and a batch reads '{fresh[0].path}' "
                f"from offset {fresh[0].first}",
                hint="restore the whole directory from one backup",
            )
        self.add(fresh)

    def dump(self, start: int, end: int) -> Any:
        """Return the files that have records of a range, as data for JSON."""
        return _adapter().dump_python(self.between(start, end), mode="json")

    def between(self, start: int, end: int) -> list[Listed]:
        """Return the files that have records of a range."""
        return [file for file in self._files if file.first < end and start < file.end]


def _read(store: Store, page: str) -> list[Listed]:
    try:
        return _adapter().validate_json(store.get(page))
    except ValidationError as error:
        raise Damaged(f"'{page}' is damaged", hint="restore this file from a backup") from error


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(list[Listed])

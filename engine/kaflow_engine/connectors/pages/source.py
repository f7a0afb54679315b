"""A table as a source of records: read in pages, each kept before a batch names its rows."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kaflow_engine.connectors.pages.kept_rows import keep_rows, kept_rows
from kaflow_engine.connectors.pages.page import (
    FIRST_PAGE_ROWS,
    Page,
    PageReader,
    checksum_of,
    next_size,
)
from kaflow_engine.connectors.sources.catalogue import Catalogue
from kaflow_engine.connectors.sources.contract import KEPT, SourcePlace, StartPolicy
from kaflow_engine.connectors.sources.records import record_batch, table_of
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.state.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesRead:
    """A range of records, and the pages that have them; see `RangeRead`."""

    source: str
    table: str
    store: Store
    pages: tuple[Page, ...]
    start: int
    end: int

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """Yield the records.

        Raises:
            Damaged: A page is gone, or is not what was written.
        """
        for page in self.pages:
            at, end = max(self.start, page.first), min(self.end, page.end)
            name = _rows_of(self.source, page)
            for some in kept_rows(self.store, name, at - page.first, end - page.first):
                stamps = pa.repeat(pa.scalar(page.read, pa.int64()), len(some))
                yield record_batch(self.source, at, some, stamps, self.table)
                at += len(some)


class PagedSource:
    """The rows of a table, in one partition.

    Args:
        place: Where its pages are kept.
        reader: What reads them.
        page_size: Rows of a page; None: as many as take a moment.
    """

    finite = True

    def __init__(self, place: SourcePlace, reader: PageReader, page_size: int | None) -> None:
        self._place, self._reader, self._page_size = place, reader, page_size
        folder = f"{KEPT}/{place.name}"
        self._catalogue = Catalogue(place.store, f"{folder}/pages", Page, "page")
        names = set(place.store.list(f"{folder}/rows/"))
        self._kept = [p for p in self._catalogue.entries if _rows_of(place.name, p) in names]
        self._size = page_size or FIRST_PAGE_ROWS
        self._ahead = 0
        """The pages with rows that were read since a batch was committed."""

    @property
    def bounded(self) -> bool:
        """Whether the last page was read."""
        pages = self._catalogue.entries
        return bool(pages) and pages[-1].last

    def partitions(self) -> Sequence[int]:
        """Return the one there is."""
        return (0,)

    def latest(self) -> Mapping[int, int]:
        """Return the end of what was read; one page is read ahead of the batches."""
        while not self.bounded and not self._ahead:
            self._read_on()
        return {0: self._catalogue.end}

    def start(self, policy: StartPolicy) -> Mapping[int, int]:
        """Return where the rows begin, end, or were read as late as a time."""
        if policy == "earliest":
            return {0: 0}
        while self._place.whole and not self.bounded:
            self._read_on()
        end = self.latest()
        if policy == "latest":
            return end
        later = (page.first for page in self._catalogue.entries if page.read >= policy)
        return {0: min(later, default=end[0])}

    def reads(self, start: Mapping[int, int], end: Mapping[int, int]) -> Sequence[PagesRead]:
        """Return what tasks read a range with.

        Raises:
            SourceUnfit: A page is no longer kept, and the table has other rows there now.
            SourceAway: The database does not answer, which has a page that is no longer kept.
        """
        first, last = start[0], end[0]
        if first >= last:
            return ()
        if last > self._catalogue.end:
            raise SourceUnfit(
                f"source '{self._place.name}' has read rows up to offset {self._catalogue.end}, "
                f"and a batch reads up to {last}",
                hint="the pages of this state are older than its batches: restore the whole "
                "directory from one backup",
            )
        pages = tuple(self._catalogue.between(first, last))
        for page in pages:
            if not self._place.store.exists(_rows_of(self._place.name, page)):
                self._read_again(page)
        read = PagesRead(
            source=self._place.name,
            table=self._reader.place,
            store=self._place.store,
            pages=pages,
            start=first,
            end=last,
        )
        return (read,)

    def found(self, start: Mapping[int, int], end: Mapping[int, int]) -> Any:
        """Return the pages that have records of a range."""
        return self._catalogue.dump(start[0], end[0])

    def know(self, found: Any) -> None:
        """Keep pages that another machine has read.

        Raises:
            Damaged: They do not follow those that are known.
        """
        self._catalogue.know(found)

    def forget(self, before: Mapping[int, int], now: int) -> None:
        """Remove the rows of pages that were read; the catalogue stays."""
        done = before.get(0, 0)
        for page in self._kept:
            if page.end <= done:
                self._place.store.delete(_rows_of(self._place.name, page))
        self._kept = [page for page in self._kept if page.end > done]
        self._ahead = sum(page.rows > 0 for page in self._kept)

    def read(self, start: Mapping[int, int], end: Mapping[int, int]) -> pa.Table:
        """Return the records of a range."""
        return table_of(self.reads(start, end))

    def _read_on(self) -> None:
        """Read the next page, and keep it."""
        began = time.monotonic()
        before = self._catalogue.entries[-1].until if self._catalogue.entries else None
        fetched = self._reader.page(before, self._size)
        page = Page(
            first=self._catalogue.end,
            rows=len(fetched.rows),
            after=before,
            until=fetched.until,
            checksum=checksum_of(fetched.rows),
            read=self._place.clock(),
            last=fetched.last,
        )
        self._keep(page, fetched.rows)
        self._catalogue.add([page])
        if self._page_size is None:
            taken = time.monotonic() - began
            self._size = next_size(self._size, taken, sum(map(len, fetched.rows)))

    def _read_again(self, page: Page) -> None:
        """Read a page that another machine has kept, or that was let go of."""
        name = self._place.name
        if page.until is None:
            return
        rows = self._reader.reread(page.after, page.until)
        if checksum_of(rows) != page.checksum:
            raise SourceUnfit(
                f"source '{name}': the rows of {self._reader.place} with keys {page.called} are "
                "not those that were read before, and the page that had them is not on this "
                "machine",
                hint="bring the state directory of the machine that read them, or the rows as they "
                "were; a pipeline with a new `id:` reads what is there now",
            )
        self._keep(page, rows)

    def _keep(self, page: Page, rows: Sequence[bytes]) -> None:
        if rows:
            keep_rows(self._place.store, _rows_of(self._place.name, page), rows)
            self._kept.append(page)
            self._ahead += 1


def _rows_of(source: str, page: Page) -> str:
    return f"{KEPT}/{source}/rows/{page.first:020d}.arrow"

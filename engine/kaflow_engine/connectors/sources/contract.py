"""What sources must offer, as Protocols; nothing of an outside system is imported.

A `Source` gives the same records for the same range of offsets.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from kaflow_engine.formats.contract import Format
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for columns only, and it takes long to load

    from kaflow_engine.state.storage.store import Store

KEPT = "sources"
"""The folder of a state directory in which each source keeps what it has found, by its name."""

StartPolicy = Literal["earliest", "latest"] | int
"""Where reading begins: at the first record, behind the last, or at a time in epoch ms."""


class Source(Protocol):
    """Records in partitions, each in the order of its offsets."""

    @property
    def bounded(self) -> bool:
        """Whether it ends for good: nothing comes behind `latest`."""
        ...

    def partitions(self) -> Sequence[int]:
        """Return the partitions there are.

        Raises:
            SourceError: It does not exist, or does not answer.
        """
        ...

    def latest(self) -> Mapping[int, int]:
        """Return the end of each partition: the offset of the next record to come."""
        ...

    def start(self, policy: StartPolicy) -> Mapping[int, int]:
        """Return from where each partition is read; its end where it has no such record."""
        ...

    def read(self, start: Mapping[int, int], end: Mapping[int, int]) -> "pa.Table":
        """Return the records (schema RECORDS) with start <= offset < end of each partition.

        Raises:
            SourceError: They cannot be read.
        """
        ...


class RangeRead(Protocol):
    """The records of a range of one partition, as a task reads them; picklable."""

    def __call__(self) -> "Iterator[pa.RecordBatch]":
        """Yield the records (schema RECORDS) in the order of their offsets.

        Raises:
            SourceError: They cannot be read, or are not those that they were.
        """
        ...


class NamedSource(Source, Protocol):
    """A source that a file names by its kind: what it has found is kept beside the state.

    Where a machine that lost its state runs batches again, they bring along what they need of that.
    """

    @property
    def finite(self) -> bool:
        """Whether all its records are there already, and `latest`, asked often enough, comes to
        their end; then it is `bounded`."""
        ...

    def reads(self, start: Mapping[int, int], end: Mapping[int, int]) -> Sequence[RangeRead]:
        """Return what tasks read ranges with, one for each partition that is not empty.

        Raises:
            SourceError: The records are not those that they were.
        """
        ...

    def found(self, start: Mapping[int, int], end: Mapping[int, int]) -> Any:
        """Return, as data for JSON, what must be known of ranges to read them elsewhere."""
        ...

    def know(self, found: Any) -> None:
        """Keep what `found` gave on another machine; what is known already is passed over.

        Raises:
            Damaged: It is something else than what is known, or does not follow it.
        """
        ...

    def forget(self, before: Mapping[int, int], now: int) -> None:
        """Let go of what only reading records again would need, which never comes: a batch that has
        read up to `before` was committed.

        Args:
            before: By partition, the offset of the first record that was not read.
            now: Epoch milliseconds.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePlace:
    """Where a source of a pipeline keeps what it must know when a range is read again."""

    name: str
    """What queries call it: the `topic` of its records."""
    store: "Store"
    """The state directory."""
    journal: Path
    """Where a source keeps what it was given, beside the state."""
    clock: Callable[[], int]
    """Epoch milliseconds."""
    connection: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """How a store of objects, or a database, is reached; secrets among it."""
    whole: bool = False
    """Whether all of its records are read before any event is: `latest` is asked as a start."""


class SourceKind(Protocol):
    """One kind of source; light to load, for planning asks it."""

    def open(self, params: Any, place: SourcePlace) -> NamedSource:
        """Open a source of a pipeline."""
        ...

    def check(self, params: Any, connection: Mapping[str, str]) -> None:
        """Look at what a start would meet, where that can be told before it.

        Raises:
            SourceError: It cannot be read.
        """
        ...

    def sample(
        self, params: Any, form: Format, connection: Mapping[str, str]
    ) -> tuple[Column, ...] | None:
        """Return the columns that its records show; None: there is no record yet.

        Args:
            params: Its settings.
            form: Of its values.
            connection: As `SourcePlace` has it.

        Raises:
            SourceError: It cannot be read.
        """
        ...

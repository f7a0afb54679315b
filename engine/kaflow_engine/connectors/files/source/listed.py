"""A file of a source of files, as its catalogue has it: once, with the offsets of its records."""

from dataclasses import dataclass

from kaflow_engine.flow.origins.files import FileFormat


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
    format: FileFormat
    header: bool = False
    marks: tuple[int, ...] = ()
    """Where in the file records begin, every so many of them; bytes."""
    unreadable: str | None = None
    """Why it cannot be read: it is one record, which says so."""

    @property
    def called(self) -> str:
        """Its path."""
        return self.path

    @property
    def end(self) -> int:
        """The offset behind its last record."""
        return self.first + self.records

    @property
    def timestamp(self) -> int:
        """Of its records, epoch milliseconds."""
        return self.changed // 1_000_000

from collections.abc import Sequence
from os import PathLike
from types import TracebackType
from typing import IO, Literal, Self

from pyarrow import Schema, Table

class RowGroupMetaData:
    @property
    def total_byte_size(self) -> int: ...

class FileMetaData:
    @property
    def num_rows(self) -> int: ...
    def row_group(self, i: int) -> RowGroupMetaData: ...

class ParquetFile:
    def __init__(self, source: str | PathLike[str] | IO[bytes]) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    @property
    def metadata(self) -> FileMetaData: ...
    @property
    def num_row_groups(self) -> int: ...
    def read_row_group(self, i: int) -> Table: ...
    @property
    def schema_arrow(self) -> Schema: ...
    def read(self, columns: Sequence[str] | None = None) -> Table: ...

def write_table(
    table: Table,
    where: str | PathLike[str] | IO[bytes],
    *,
    compression: Literal["snappy", "zstd", "none"] = "snappy",
) -> None: ...

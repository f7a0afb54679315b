from collections.abc import Sequence
from os import PathLike
from typing import IO, Literal

from pyarrow import Schema, Table

class FileMetaData:
    @property
    def num_rows(self) -> int: ...

class ParquetFile:
    def __init__(self, source: str | PathLike[str] | IO[bytes]) -> None: ...
    @property
    def metadata(self) -> FileMetaData: ...
    @property
    def schema_arrow(self) -> Schema: ...
    def read(self, columns: Sequence[str] | None = None) -> Table: ...

def write_table(
    table: Table,
    where: str | PathLike[str] | IO[bytes],
    *,
    compression: Literal["snappy", "zstd", "none"] = "snappy",
) -> None: ...

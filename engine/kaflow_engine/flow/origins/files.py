"""Files as a source, as a plan keeps them."""

from dataclasses import dataclass
from typing import Literal

FileFormat = Literal["parquet", "json", "csv", "avro"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesParams:
    """Files that appear in a folder."""

    type: Literal["files"] = "files"
    path: str
    """From the root, or with a scheme."""
    format: FileFormat
    header: bool
    settle: int
    """How long nothing has written to a file that is whole, in milliseconds."""

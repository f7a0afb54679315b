"""Lines that are added to a file, read once: the engine writes what it is given to a journal."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from kaflow_engine.api.sources import Given, Piece

_SOME = 1_000
"""Lines that are written down together."""


class Options(BaseModel):
    """What an author may say under `options`."""

    model_config = ConfigDict(extra="forbid")

    file: str
    """Lines, each with its end."""
    wait: float = Field(default=0.5, gt=0, le=1)
    """Seconds before it is looked for more."""


class Feed:
    """The kind of source, as planning asks it; light to load."""

    contract = 1
    options = Options
    replays = False

    def bounded(self, options: Options) -> bool:
        """Return False: lines may be added."""
        return False

    def columns(self, options: Options) -> Mapping[str, str] | None:
        """Return the columns of its rows."""
        return {"at": "BIGINT", "line": "VARCHAR"}

    def open(self, given: Given) -> "Lines":
        """Open a file."""
        return Lines(Options.model_validate(given.options))


@dataclass(frozen=True)
class Lines:
    """The lines of a file."""

    options: Options

    def read(self, after: int | None) -> Iterator[Piece]:
        """Yield lines behind a byte of the file; each piece says where the next one begins."""
        at = after or 0
        while True:
            rows: list[Mapping[str, object]] = []
            for line in self._lines(at):
                rows.append({"at": at, "line": line.decode().rstrip("\n")})
                at += len(line)
                if len(rows) == _SOME:
                    break
            yield Piece(rows=rows, position=at)
            if not rows:
                time.sleep(self.options.wait)

    def _lines(self, at: int) -> Iterator[bytes]:
        file = Path(self.options.file)
        if file.exists():
            with file.open("rb") as lines:
                lines.seek(at)
                for line in lines:
                    if line.endswith(b"\n"):  # else someone is writing it
                        yield line

"""Rows out of a SQLite file by their numbers: a number is the same row, whenever it is read."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from kaflow_engine.api.sources import Given, SourceUnfit, TimedRow


class Options(BaseModel):
    """What an author may say under `options`."""

    model_config = ConfigDict(extra="forbid")

    file: str
    """A SQLite file with a table `rows` of one column, a JSON object; rows are added, and stay."""


class SqliteRows:
    """The kind of source, as planning asks it; light to load."""

    contract = 1
    options = Options
    replays = True

    def bounded(self, options: Options) -> bool:
        """Return False: rows may be added."""
        return False

    def columns(self, options: Options) -> Mapping[str, str] | None:
        """Return None: the author declares the columns."""
        return None

    def open(self, given: Given) -> "Rows":
        """Open a file."""
        return Rows(Options.model_validate(given.options).file)


@dataclass(frozen=True)
class Rows:
    """The rows of a file, in one partition; it travels to tasks."""

    file: str

    def ends(self) -> Mapping[int, int]:
        """Return the offset of the next row to come."""
        return {0: self._asked("SELECT count(*) FROM rows")[0][0]}

    def starts(self, since: int | None) -> Mapping[int, int]:
        """Return the offset of the first row: all are as old as can be."""
        return {0: 0} if since is None or since <= 0 else self.ends()

    def rows(self, partition: int, start: int, end: int) -> Iterator[TimedRow]:
        """Yield the rows of a range."""
        asked = f"SELECT row FROM rows WHERE rowid > {start} AND rowid <= {end} ORDER BY rowid"
        for (row,) in self._asked(asked):
            yield TimedRow(row=json.loads(row), timestamp=0)

    def _asked(self, sql: str) -> list[Any]:
        try:
            with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as file:
                return file.execute(sql).fetchall()
        except sqlite3.Error as error:
            raise SourceUnfit(f"'{self.file}' cannot be read: {error}") from error

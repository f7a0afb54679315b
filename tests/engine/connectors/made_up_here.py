"""Sinks and a source that someone else might write, met by nothing but the contract."""

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

import pyarrow as pa

from kaflow_engine.connectors.contract import (
    Capabilities,
    FinishedBatch,
    Owner,
    TaskPart,
    Written,
)
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.sources.contract import StartPolicy
from kaflow_engine.errors import StateError
from kaflow_engine.flow.records import RECORDS

_APPEND = Capabilities(
    accepts=frozenset({"append"}),
    commit="task",
    guarantee="exactly_once",
    reason="rows and the number of their batch are one transaction",
    ordered=True,
)


_NAMED = replace(_APPEND, commit="driver", reason="a batch is one file, named by its number")


@dataclass(frozen=True, slots=True)
class LedgerSink:
    """A database with transactions: tasks commit rows together with a row of its own ledger."""

    path: Path
    owner: Owner
    capabilities: Capabilities = _APPEND

    def write(self, part: TaskPart) -> Written:
        values: list[int] = part.rows["n"].to_pylist()
        with _database(self.path) as db:
            batch, rows = self._last(db)
            if batch == part.batch and rows != len(values):
                raise StateError(f"batch {batch} has {len(values)} rows, and had {rows}")
            if batch >= part.batch:
                return Written(rows={})
            db.executemany("INSERT INTO kept VALUES (?)", [(value,) for value in values])
            part.passing("before_commit")
            key = (self.owner.state, self.owner.generation)
            row = (*key, part.batch, part.mark, len(values))
            db.execute("INSERT OR REPLACE INTO ledger VALUES (?, ?, ?, ?, ?)", row)
        return Written(rows={"made_up": len(values)})

    def commit(self, batch: FinishedBatch) -> None:
        pass  # its tasks have looked

    def delivered(self, batch: int) -> bool:
        with _database(self.path) as db:
            return self._last(db)[0] >= batch

    def finish(self) -> None:
        pass

    def _last(self, db: sqlite3.Connection) -> tuple[int, int]:
        key = (self.owner.state, self.owner.generation)
        asked = "SELECT batch, rows FROM ledger WHERE state = ? AND generation = ?"
        return db.execute(asked, key).fetchone() or (0, 0)


def ledger_values(path: Path) -> list[int]:
    with _database(path) as db:
        return [value for (value,) in db.execute("SELECT n FROM kept")]


def ledger_holdings(path: Path) -> set[Holding]:
    with _database(path) as db:
        found = db.execute("SELECT state, generation, batch, mark FROM ledger").fetchall()
    return {Holding(state=s, generation=g, batch=b, mark=m, table="kept") for s, g, b, m in found}


def _database(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE IF NOT EXISTS kept (n INTEGER)")
    db.execute(
        "CREATE TABLE IF NOT EXISTS ledger (state TEXT, generation INTEGER, batch INTEGER, "
        "mark TEXT, rows INTEGER, PRIMARY KEY (state, generation))"
    )
    return db


@dataclass(frozen=True, slots=True)
class FolderSink:
    """Files with names that follow from the batch: tasks write, the driver gives the name."""

    folder: Path
    owner: Owner
    capabilities: Capabilities = _NAMED

    def write(self, part: TaskPart) -> Written:
        self.folder.mkdir(exist_ok=True)
        name = f"{part.batch}-{token_hex(4)}.open"
        (self.folder / name).write_text(json.dumps(part.rows["n"].to_pylist()))
        part.passing("files_written")
        return Written(rows={"made_up": part.rows.num_rows}, notes=({"opened": name},))

    def commit(self, batch: FinishedBatch) -> None:
        names = [note["opened"] for note in batch.notes if "opened" in note]
        rows = [n for name in names for n in json.loads((self.folder / name).read_text())]
        target = self._file(batch.number)
        if target.exists():
            if batch.same_rows and json.loads(target.read_text())["rows"] != rows:
                raise StateError(f"batch {batch.number} has other rows than it had")
            return
        whole = self.folder / f"{batch.number}-{token_hex(4)}.open"
        whole.write_text(json.dumps({"mark": batch.mark, "rows": rows}))
        os.rename(whole, target)

    def delivered(self, batch: int) -> bool:
        return self._file(batch).exists()

    def finish(self) -> None:
        pass

    def _file(self, batch: int) -> Path:
        return self.folder / f"{self.owner.state}-{self.owner.generation}-{batch}.json"


def folder_values(folder: Path) -> list[int]:
    files: list[dict[str, Any]] = [json.loads(f.read_text()) for f in folder.glob("*.json")]
    return [n for file in files for n in file["rows"]]


def folder_holdings(folder: Path) -> set[Holding]:
    found: set[Holding] = set()
    for file in folder.glob("*.json"):
        state, generation, batch = file.stem.rsplit("-", 2)
        mark = json.loads(file.read_text())["mark"]
        found.add(
            Holding(
                state=state, generation=int(generation), batch=int(batch), mark=mark, table="kept"
            )
        )
    return found


class ListSource:
    """Records in memory, which end."""

    bounded = True

    def __init__(self, values: Sequence[Sequence[bytes]]) -> None:
        self._values = values

    def partitions(self) -> tuple[int, ...]:
        return tuple(range(len(self._values)))

    def latest(self) -> Mapping[int, int]:
        return {p: len(values) for p, values in enumerate(self._values)}

    def start(self, policy: StartPolicy) -> Mapping[int, int]:
        if policy == "latest":
            return self.latest()
        first = 0 if policy == "earliest" else policy
        return {p: min(first, end) for p, end in self.latest().items()}

    def read(self, start: Mapping[int, int], end: Mapping[int, int]) -> pa.Table:
        rows = [
            {"topic": "t", "partition": p, "offset": at, "timestamp": at, "value": value}
            for p, values in enumerate(self._values)
            for at, value in enumerate(values)
            if p in end and start[p] <= at < end[p]
        ]
        return pa.Table.from_pylist(rows, schema=RECORDS)

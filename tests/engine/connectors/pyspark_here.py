"""Lines that take what data sources of PySpark give, and what is in their journals then."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaflow_engine.connectors.journal.journal import Journal, Message
from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.connectors.journal.sessions import Line, Patience
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.connectors.pyspark.classes import MODULE
from kaflow_engine.connectors.pyspark.receiving import take_rows
from kaflow_engine.flow.origins.plugins import PySparkParams

HERE = {MODULE: "tests.engine.connectors.data_sources_here"}
NUMBERS = [{"n": n, "called": f"n{n}"} for n in range(7)]
NOW = 1_795_296_000_000


def params(format_name: str, **other: Any) -> PySparkParams:
    said: dict[str, Any] = {"options": (), "columns": (), "bounded": False, "interval": 20}
    return PySparkParams(format=format_name, max_backlog=1_000_000, **{**said, **other})


@dataclass(frozen=True, kw_only=True)
class Cut(Line):
    """Ends when so many pieces are written down."""

    pieces: list[int]
    """Rows of each."""
    most: int

    def write(self, messages: Sequence[Message], note: bytes | None = None) -> None:
        super().write(messages, note)
        self.pieces.append(len(messages))
        if len(self.pieces) >= self.most:
            self.stop()


def line_of(journal: Journal, said: PySparkParams, most: int = 1, patience: float = 0) -> Cut:
    inlet = Inlet(
        name="s", params=said, journal=journal, secrets={}, patience=patience, settings=HERE
    )
    return Cut(inlet=inlet, patience=Patience(seconds=patience), pieces=[], most=most)


def run(folder: Path, said: PySparkParams, most: int = 1, patience: float = 0) -> list[int]:
    """Write pieces down, as a run does that ends after so many; returns their sizes."""
    journal = Journal(folder, NOW)
    line = line_of(journal, said, most, patience)
    try:
        take_rows(line)
    finally:
        journal.close()
    return line.pieces


def rows(folder: Path) -> list[Any]:
    source = JournalSource(name="s", folder=folder)
    found = source.read(source.start("earliest"), source.latest())
    return [json.loads(value) for value in found["value"].to_pylist()]

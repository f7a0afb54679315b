"""The console as a kind of sink: a line of JSON for each change, printed by the driver."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kaflow_engine.connectors.contract import (
    Capabilities,
    Delivery,
    FinishedBatch,
    Outlet,
    Output,
    Settings,
    TaskPart,
    Unfit,
    Written,
)
from kaflow_engine.connectors.json_rows import json_rows, with_row
from kaflow_engine.connectors.unheld import UnheldOutlet, UnheldRows
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for capabilities only, and it takes long to load

CAPABILITIES = Capabilities(
    accepts=frozenset({"append", "upsert"}),
    commit="driver",
    guarantee="at_least_once",
    reason="after a failure, lines of the last batch may be printed again",
    ordered=True,
)
_NOTE = "console"


class Console:
    """At least once: nothing tells whether a line was printed."""

    outlet: Outlet | None

    def __init__(self) -> None:
        self.outlet = UnheldOutlet(lambda output, _: ConsoleLines(output))

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what the console promises."""
        return CAPABILITIES

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return nothing: every row has a JSON form."""
        return ()


@dataclass
class ConsoleLines(UnheldRows):
    """Tasks make lines, and the driver prints those of a batch when all of them are there."""

    output: Output
    _come: int = 0
    """Lines that have come in this run."""

    @property
    def capabilities(self) -> Capabilities:
        """What the console promises."""
        return CAPABILITIES

    def write(self, part: TaskPart) -> Written:
        """Hand the lines of a task to the driver."""
        lines = list(lines_of(self.output, part.rows))
        note = {_NOTE: {self.output.name: lines}}
        return Written(rows={self.output.name: part.rows.num_rows}, notes=(note,))

    def commit(self, batch: FinishedBatch) -> None:
        """Print the lines of all tasks, or one of so many."""
        every = int(self.output.settings.get("sample_every") or 1)
        for note in batch.notes:
            for line in note.get(_NOTE, {}).get(self.output.name, ()):
                self._come += 1
                if self._come % every == 0:
                    sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def lines_of(output: Output, rows: "pa.Table") -> Iterator[str]:
    """Yield a line for each change: the output, the operation, the key, and the row as a JSON
    topic would have it; where lines are rows, a line for each row that is there.

    Args:
        output: Which one.
        rows: Its columns, with those of `flow.records` that say what happens to a row.
    """
    if output.settings.get("lines") == "rows":
        spaced = json_rows(output, rows, "json_spaced")
        yield from (row for _, _, row in spaced if row is not None)
        return
    for operation, key, row in json_rows(output, rows):
        about = {"output": output.name, "op": operation, **({"key": key} if key else {})}
        yield json.dumps(about, ensure_ascii=False) if row is None else with_row(about, row)

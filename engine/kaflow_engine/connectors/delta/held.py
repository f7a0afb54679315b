"""What a Delta table holds of its stream: whose it is, and what each batch has added."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from kaflow_engine.connectors.delta.data_files import TableFile
from kaflow_engine.connectors.same_batch import other_records, other_rows

WRITER = "kaflow.writer"
"""In the information of a commit: the state, and its generation, that the batch belongs to. Among
the properties of the table: whose stream writes it."""

_BATCH, _MARK, _ROWS = "kaflow.batch", "kaflow.mark", "kaflow.rows"
_LOOKED_BACK = (100, None)
"""Commits, newest first; all of them where those are not enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What a batch adds to a table."""

    batch: int
    mark: str = ""
    """`batch_mark` of the batch."""
    rows: Mapping[str, int]
    """By partition."""

    @staticmethod
    def of(batch: int, mark: str, files: Iterable[TableFile]) -> "Added":
        """Return what the files of a batch add."""
        rows: Counter[str] = Counter()
        for file in files:
            rows[file.partition] += file.rows
        return Added(batch=batch, mark=mark, rows=dict(sorted(rows.items())))

    def info(self, writer: str) -> dict[str, str]:
        """Return what the commit of the batch says of it."""
        rows = json.dumps(dict(self.rows))
        return {WRITER: writer, _BATCH: str(self.batch), _MARK: self.mark, _ROWS: rows}


@dataclass(frozen=True, slots=True)
class NumberOnly:
    """A batch of which a table knows nothing but its number: an earlier version has added it."""


def owner_of(table: DeltaTable) -> str | None:
    """Return whose stream writes a table; None before the first batch."""
    return table.metadata().configuration.get(WRITER)


def added_before(table: DeltaTable, writer: str, batch: int) -> Added | NumberOnly | None:
    """Return what a batch has added; None if it had no rows."""
    for limit in _LOOKED_BACK:
        for commit in table.history(limit):
            if commit.get(WRITER) != writer:
                continue
            if _BATCH not in commit:  # all further ones are of that version, too
                return NumberOnly()
            if commit[_BATCH] == str(batch):
                return _of_info(commit)
    return None


def require_same(
    name: str, before: Added | NumberOnly | None, now: Added, same_rows: bool = True
) -> None:
    """Refuse a batch whose number the table holds, and which is not the one that it holds.

    Args:
        name: Of the table.
        before: What the table knows of the batch; None: it had no rows. A number alone proves
            the batch, as it did for the version that added it.
        now: What the batch has now that it runs again.
        same_rows: Whether it must have the rows it had; not where records are known to be lost.

    Raises:
        StateError: It is another batch, or has other rows.
    """
    if isinstance(before, NumberOnly):
        return
    if before is not None and before.mark != now.mark:
        raise other_records("table", name, now.batch)
    if before is not None and not same_rows:
        return
    rows: Mapping[str, int] = before.rows if before is not None else {}
    for partition in sorted({*rows, *now.rows}):
        had, has = rows.get(partition, 0), now.rows.get(partition, 0)
        if had != has:
            place = f"to partition '{partition}' of table '{name}'"
            raise other_rows("table", now.batch, had, has, place)


def _of_info(commit: Mapping[str, Any]) -> Added:
    rows: dict[str, int] = json.loads(commit[_ROWS])
    return Added(batch=int(commit[_BATCH]), mark=commit[_MARK], rows=rows)

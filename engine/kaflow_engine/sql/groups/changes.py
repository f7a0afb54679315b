"""Changes of a table that are rows of their own: what a relation with `as: append` reads."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.tables import APPEND_OP, APPEND_TIME
from kaflow_engine.sql.flat import Flat, Group
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.groups.shapes import AppendShape
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.tables.operations import OP

CHANGES = "changes"
"""What the alias of such rows begins with."""
_META = "changes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesText:
    """What an author says of changes."""

    name: str
    """The relation that has them as rows."""
    of: str
    """The relation that is the table."""
    deletes: bool


def reading_changes(below: exp.Select, changes: ChangesText) -> exp.Select:
    """Return a query of all of a table as one whose rows are its changes."""
    below.meta[_META] = changes
    return below


def changes_of(select: exp.Query) -> ChangesText | None:
    """Return what is said of the changes that are the rows of a query; None of another one."""
    found: Any = select.meta.get(_META)
    return found


def rows_of_changes(
    changes: ChangesText, select: exp.Select, flat: Flat, at: Location | None
) -> dict[str, exp.Expr]:
    """Make rows of changes, and return their columns by name.

    Args:
        changes: What is said of them.
        select: The query of the table.
        flat: The table, with its outputs; the changes are added to it.
        at: Where the text of the whole query begins.

    Raises:
        SqlError: Its rows do not replace each other.
    """
    line = line_of(select)
    last = flat.groups[-1] if flat.groups else None
    if not flat.changes_rows and (last is None or last.window is None):
        raise SqlError(
            f"'{changes.name}' reads the changes of '{changes.of}', whose rows do not change",
            at_line(at, line),
            f"name '{changes.of}' itself after FROM; or read the topic behind it as a table"
            if not flat.changes
            else f"add table: true to the topic behind '{changes.of}', so that the row before a "
            "change is known",
        )
    group = Group(
        alias=flat.unique(CHANGES),
        keys=dict(flat.values),
        line=line,
        append=AppendShape(of=changes.of, deletes=changes.deletes),
    )
    flat.groups.append(group)
    flat.record = {OP: group.column(APPEND_OP), TIME: group.column(APPEND_TIME)}
    flat.sets = {}
    return {name: group.column(name) for name in group.keys}

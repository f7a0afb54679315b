"""SELECT DISTINCT: groups of equal rows, of which the first one leaves."""

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.flat import Flat, Group
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.groups.grouping import text_of
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import at_line

DISTINCT = "distinct"
"""What the alias of such a group begins with."""


def is_distinct(select: exp.Query) -> bool:
    """Tell whether a SELECT drops equal rows."""
    return bool(select.args.get("distinct"))


def distinct_rows(select: exp.Select, flat: Flat, at: Location | None) -> dict[str, exp.Expr]:
    """Group rows by all that is selected, and return what is selected of the groups, by name.

    Args:
        select: As it was written.
        flat: Its rows, with their outputs; the group is added to it.
        at: Where the SQL text begins.

    Raises:
        SqlError: The rows replace each other.
    """
    line = line_of(select.args["distinct"], select)
    _refuse_changes(flat, at_line(at, line))
    group = Group(alias=flat.unique(DISTINCT), line=line, distinct=True)
    known: dict[str, str] = {}
    outputs: dict[str, exp.Expr] = {}
    for output, tree in flat.outputs.items():
        text = text_of(tree)
        if text not in known:
            known[text] = f"k{len(known)}"
            group.keys[known[text]] = tree
            group.named.append((output, known[text]))
        outputs[output] = group.column(known[text])
    flat.groups.append(group)
    flat.record = {TIME: group.column(TIME)}
    return outputs


def _refuse_changes(flat: Flat, at: Location | None) -> None:
    if flat.groups and flat.changes_rows:
        raise SqlError(
            "DISTINCT over groups that change: each of them is one row already",
            at,
            "remove DISTINCT; or add a window to the GROUP BY, whose rows leave once",
        )
    if flat.changes_rows:
        raise SqlError(
            f"DISTINCT over table '{flat.first}': its rows change and go",
            at,
            "write GROUP BY ALL: each combination is then one row of a table; or read the topic as "
            "events, without table: true",
        )

"""Changes of a table that are rows of their own: what a relation with `as: append` reads."""

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.tables import APPEND_KEY, APPEND_OP, APPEND_TIME
from kaflow_engine.model.record_columns import KEY, ROLES
from kaflow_engine.sql.flat import Flat, Group
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.groups.shapes import AppendShape
from kaflow_engine.sql.scope import element
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
    is_output: bool = False
    """An output says so, of its own rows: `of` is its name."""


def changes_as_rows(below: exp.Query, of: str, at: Location) -> exp.Select:
    """Return a query whose rows are all changes of another one, with what they do to its rows.

    Args:
        below: A table.
        of: What people call it.
        at: Where its text begins.

    Raises:
        SqlError: It sets what rows of changes do not keep.
    """
    for select in below.selects:
        if isinstance(select, exp.Alias) and (name := select.alias.lower()) in ROLES:
            raise SqlError(
                f"output '{of}' has changes: append, and AS {name} is for records of rows",
                at_line(at, line_of(select)),
                "write key: <column> of the output, under another name"
                if name == KEY
                else "remove it, or give the column another name: it is then part of the value",
            )
    said = ChangesText(name=of, of=of, deletes=True, is_output=True)
    table = reading_changes(exp.select("*").from_(below.subquery(of)), said)
    shown = exp.alias_(exp.column(OP), OP)
    return exp.select("*", shown).from_(table.subquery(of))


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
    place = at_line(at, line)
    last = flat.groups[-1] if flat.groups else None
    if not flat.changes_rows and (last is None or last.window is None):
        raise _unchanging(changes, place, without_table=flat.is_upsert)
    group = Group(
        alias=flat.unique(CHANGES),
        keys=dict(flat.values),
        line=line,
        append=AppendShape(of=changes.of, deletes=changes.deletes),
    )
    names = list(group.keys)
    record = {OP: group.column(APPEND_OP), TIME: group.column(APPEND_TIME)}
    if (key := _key_of(flat)) is not None:
        group.keys[APPEND_KEY] = key
        record[KEY] = group.column(APPEND_KEY)
    flat.groups.append(group)
    flat.record, flat.sets = record, {}
    return {name: group.column(name) for name in names}


def _key_of(flat: Flat) -> exp.Expr | None:
    """Return the key that rows have in their table, a STRUCT of several columns; None of joined and
    of unnested rows, and of those of unions, whose keys a plan makes."""
    if flat.groups and flat.union_of is None:
        return flat.record.get(KEY)
    if flat.groups or flat.joins or flat.unnests or flat.union_of is not None:
        return None
    if flat.discriminator is not None or flat.alike is not None:
        return None
    alias, _ = flat.sources[0]
    parts = {name: element(alias, name) for name in flat.tables[alias]}
    if len(parts) == 1:
        return next(iter(parts.values()))
    shown = {tree: name for name, tree in reversed(flat.values.items())}
    fields = (
        exp.PropertyEQ(this=exp.to_identifier(shown.get(tree, name), quoted=True), expression=tree)
        for name, tree in parts.items()
    )
    return exp.Struct(expressions=list(fields))


def _unchanging(changes: ChangesText, at: Location | None, *, without_table: bool) -> SqlError:
    """Return what is wrong with changes of rows that do not change, or are not known before."""
    whose = (
        f"output '{changes.of}' has changes: append, whose rows do not change"
        if changes.is_output
        else f"'{changes.name}' reads the changes of '{changes.of}', whose rows do not change"
    )
    if without_table and changes.is_output:
        whose = f"output '{changes.of}' has changes: append, and the row before is not known"
    of = "the query" if changes.is_output else f"'{changes.of}'"
    if without_table:
        hint = f"add table: true to the topic behind {of}, so that the row before a change is known"
    elif changes.is_output:
        hint = "remove it: each row is a record; or read the topic behind the query as a table"
    else:
        hint = f"name {of} itself after FROM; or read the topic behind it as a table"
    return SqlError(whose, at, hint)

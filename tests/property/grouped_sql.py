"""GROUP BY as SQL."""

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from tests.reference.conditions import Column, Condition
from tests.reference.grouping import END, START, GroupCall, Grouping, Hop, Session
from tests.reference.pipeline import Write

Conditions = Callable[[Condition, Callable[[Column], str]], str]
"""Writes a condition, with a way to write its columns."""


def grouped(
    write: Write,
    entry: Mapping[str, str],
    rest: Sequence[str],
    condition: Conditions,
    ordinal: bool,
) -> str:
    """Write the groups of a query.

    Args:
        write: What is written.
        entry: The SQL of each column of the rows that go into the first groups.
        rest: FROM and WHERE.
        condition: Writes conditions.
        ordinal: GROUP BY names columns of the select list by their place.
    """
    first, *others = write.groups
    text = _level(first, entry, rest, condition, ordinal)
    before = first
    for group in others:
        columns = {name: name for name, _ in before.select}
        over = _level(group, columns, ["FROM windows"], condition, ordinal)
        text = f"WITH windows AS (\n{text}\n)\n{over}"
        before = group
    return text


def _level(
    group: Grouping,
    entry: Mapping[str, str],
    rest: Sequence[str],
    condition: Conditions,
    ordinal: bool,
) -> str:
    values = {key: entry[key] for key in group.keys}
    if group.distinct:
        columns = ",\n  ".join(f"{values[of]} AS {name}" for name, of in group.select)
        return "\n".join([f"SELECT DISTINCT\n  {columns}", *rest])
    values |= {call.name: _call(call, entry, condition) for call in group.calls}
    values |= {bound: f"epoch_ms({bound})" for bound in (START, END)}
    lines = ["SELECT\n  " + ",\n  ".join(f"{values[of]} AS {name}" for name, of in group.select)]
    places = {of: str(place) for place, (_, of) in enumerate(group.select, 1)}
    by = [places[key] if ordinal else entry[key] for key in group.keys]
    if group.window is not None:
        by.append(_window(group.window))
    lines += [*rest, *(["GROUP BY " + ", ".join(by)] if by else [])]
    having = [condition(part, lambda column: values[column.name]) for part in group.having]
    return "\n".join([*lines, *(["HAVING " + " AND ".join(having)] if having else [])])


def _call(call: GroupCall, entry: Mapping[str, str], condition: Conditions) -> str:
    argument = "*" if call.argument is None else entry[call.argument]
    match call.function:
        case "count_star":
            text = "count(*)"
        case "count_distinct":
            text = f"count(DISTINCT {argument})"
        case _:
            text = f"{call.function}({argument})"
    asked = [condition(part, lambda column: entry[column.name]) for part in call.where]
    return f"{text} FILTER (WHERE {' AND '.join(asked)})" if asked else text


def _window(window: Hop | Session) -> str:
    match window:
        case Hop(size=size, advance=advance) if size == advance:
            return f"tumble({_interval(size)})"
        case Hop(size=size, advance=advance):
            return f"hop({_interval(size)}, {_interval(advance)})"
        case Session(gap=gap):
            return f"session({_interval(gap)})"
        case _:
            assert_never(window)


def _interval(milliseconds: int) -> str:
    return f"INTERVAL {milliseconds // 1000} SECONDS"

"""Types of what a query groups by, of what its aggregates read, and of their results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kaflow_engine.duck import binding
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import Location
from kaflow_engine.flow.tables import APPEND_OP, APPEND_TIME
from kaflow_engine.flow.windows import (
    NAMED_START,
    ROW_TIME,
    WINDOW_END,
    WINDOW_START,
    NamedWindow,
)
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.shape import ROW, CallShape, Expr, GroupShape, QueryShape
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.transforms.lookup_types import check_lookup
from kaflow_engine.sql.types.bind import AliasColumns, Binder, with_elements
from kaflow_engine.sql.types.refusals import refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupColumns:
    """The typed columns of one GROUP BY."""

    keys: tuple[Column, ...]
    arguments: tuple[Column, ...]
    """What its calls read of a row, under the names that they give it, each name once."""
    results: tuple[Column, ...]
    """Of its calls."""
    window: tuple[Column, ...]
    """`window_start` and `window_end`, and `_time` where it is read."""

    @property
    def row(self) -> tuple[Column, ...]:
        """The columns of its rows; of runs, beside what their SQL selects, what goes into them."""
        return (*self.keys, *self.results, *self.window)


def group_columns(
    columns: AliasColumns, query: QueryShape, at: Location | None
) -> tuple[GroupColumns, ...]:
    """Return the typed columns of each GROUP BY of a query, in their order.

    Args:
        columns: Of each source, and the elements of unnested lists.
        query: Whose groups they are.
        at: Where its text begins.

    Raises:
        ModelError: An expression or a call cannot be bound.
    """
    found: list[GroupColumns] = []
    below = columns
    for group in query.groups:
        made = _columns(below, group, at)
        found.append(made)
        below = {group.alias: made.row}
    return tuple(found)


def source_columns(
    query: QueryShape, columns: AliasColumns, at: Location | None
) -> dict[str, Sequence[Column]]:
    """Return the columns of each source of a query: of a topic, or of what is looked up.

    Args:
        query: Whose sources they are.
        columns: Of each topic.
        at: Where its text begins.

    Raises:
        ModelError: As `group_columns`.
    """
    found: dict[str, Sequence[Column]] = {}
    for source in query.sources:
        if source.query is None:
            found[source.alias] = columns[source.topic]
            continue
        read = source_columns(source.query, columns, at)
        if not source.query.groups:
            found[source.alias] = read[source.alias]
            continue
        below = with_elements(read, source.query, at)
        found[source.alias] = group_columns(below, source.query, at)[-1].row
    return found


def rows_of_groups(
    query: QueryShape, groups: Sequence[GroupColumns]
) -> dict[str, Sequence[Column]]:
    """Return the columns of the rows of groups, by their aliases."""
    return {group.alias: each.row for group, each in zip(query.groups, groups, strict=True)}


def arguments_of(group: GroupShape) -> dict[str, Expr]:
    """Return what the calls of a group read of a row, and what names its window, by name."""
    found = {name: expr for call in group.calls for name, expr in call.arguments}
    if isinstance(group.window, NamedWindow) and group.window_of is not None:
        found[NAMED_START] = group.window_of
    return found


def _columns(below: AliasColumns, group: GroupShape, at: Location | None) -> GroupColumns:
    arguments = arguments_of(group)
    binder = Binder(below, at, [*(expr for _, expr in group.keys), *arguments.values()])
    keys = tuple(Column(name, binder.type_of(expr)) for name, expr in group.keys)
    if group.run is not None:
        results = (*group.run.results, Column(APPEND_TIME, "TIMESTAMP"))
        return GroupColumns(keys=keys, arguments=(), results=results, window=())
    if group.transform is not None:
        check_lookup(group.transform, keys, at_line(at, group.line))
        results = group.transform.results(keys)
        return GroupColumns(keys=keys, arguments=(), results=results, window=())
    if group.append is not None:
        beside = (Column(APPEND_OP, "VARCHAR"), Column(APPEND_TIME, "TIMESTAMP"))
        return GroupColumns(keys=keys, arguments=(), results=beside, window=())
    typed = tuple(Column(name, binder.type_of(expr)) for name, expr in arguments.items())
    window = (WINDOW_START, WINDOW_END) if group.window is not None else ()
    window += (ROW_TIME,) if group.timed else ()
    return GroupColumns(
        keys=keys,
        arguments=typed,
        results=tuple(
            Column(call.name, kind)
            for call, kind in zip(group.calls, _call_types(group.calls, typed, at), strict=True)
        ),
        window=tuple(Column(name, "TIMESTAMP") for name in window),
    )


def _call_types(
    calls: Sequence[CallShape], arguments: Sequence[Column], at: Location | None
) -> tuple[str, ...]:
    """Return the type of the result of each call."""
    if not calls:
        return ()
    columns = (f"NULL::{each.type} AS {identifier(f'{ROW}.{each.name}')}" for each in arguments)
    rows = f"(SELECT {', '.join(('NULL AS nothing', *columns))})"

    def ask(sql: str) -> str:
        return binding.bind(f"SELECT {sql} AS x FROM {rows}")[0]

    names = ", ".join(f"{call.sql} AS x{i}" for i, call in enumerate(calls))
    try:
        return binding.bind(f"SELECT {names} FROM {rows}")
    except binding.Error:
        return tuple(_call_type(call, ask, at) for call in calls)


def _call_type(call: CallShape, ask: Callable[[str], str], at: Location | None) -> str:
    try:
        return ask(call.sql)
    except binding.Error as error:
        raise refusal(error, call.sql, at_line(at, call.line), ask) from error

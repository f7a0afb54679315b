"""The group of a SELECT: its keys, window and calls, and what is selected of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.flow.windows import (
    WINDOW_END,
    WINDOW_START,
    CalendarWindow,
    FixedWindow,
    NamedWindow,
)
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.sql.flat import Flat, Group
from kaflow_engine.sql.groups.calls import Calls, aggregates_in, function_of, line_near
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.groups.items import Item, items_of
from kaflow_engine.sql.groups.windows import (
    ClockOf,
    Found,
    function_named,
    window_of,
    windows_change,
)
from kaflow_engine.sql.scope import NeedsSchema, Scope
from kaflow_engine.sql.select_list import conjuncts, selected_columns
from kaflow_engine.sql.shape import BATCH_TIME
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import DIALECT, at_line
from kaflow_engine.sql.tables.refused import refuse_window
from kaflow_engine.sql.types.functions import is_function, unknown_function

GROUPED = "grouped"
"""What the alias of a group begins with."""
_MONTH = 28 * 86_400_000
"""No month is shorter."""
_BUCKETS = (exp.DateBin, exp.TimestampTrunc, exp.DateTrunc)


def is_grouped(select: exp.Select) -> bool:
    """Tell whether a SELECT makes groups of its rows."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(next(aggregates_in(part), None) is not None for part in select.expressions)


@dataclass(kw_only=True)
class Grouper:
    """Reads the GROUP BY, HAVING and select list of a SELECT."""

    at: Location | None
    wrong: list[ModelError]
    clock_of: ClockOf
    """Tells the event time of the rows that are grouped."""

    def selected(self, select: exp.Select, scope: Scope, flat: Flat) -> dict[str, exp.Expr]:
        """Group the rows, and return what is selected of the groups, by name.

        Raises:
            ModelError: Something in it cannot be grouped by, or be selected of a group.
        """
        reading = _with_windows(select, scope)
        columns = selected_columns(reading, scope, self.wrong)
        items = items_of(select, columns, scope)
        group = Group(alias=flat.unique(GROUPED), line=line_of(select.args.get("group"), select))
        group.changes = windows_change(select)
        for item in items:
            called = function_named(item.tree.unnest())
            if called is not None:
                refuse_window(flat, called, at_line(self.at, item.line))
        of = _Columns(at=self.at, flat=flat, group=group, clock_of=self.clock_of)
        for item, found in self._window(items, of.clock_of):
            of.set_window(item, found)
        for item in items:
            of.add_key(item)
        if group.window is not None:
            group.named.append((WINDOW_START, WINDOW_START))
        lines = {part.alias_or_name.lower(): line_of(part, select) for part in select.expressions}
        outputs: dict[str, exp.Expr] = {}
        for name, tree in columns.items():
            try:
                outputs[name] = of.read(tree, lines.get(name.lower(), group.line))
            except ModelError as error:
                self.wrong.append(error)
                outputs[name] = exp.null()
        having = reading.args.get("having")
        if having:
            for part in conjuncts(having.this):
                try:
                    tree = scope.resolve(_behind_aliases(part, reading, scope, of))
                    group.where.append(of.read(tree, line_of(part, having)))
                except NeedsSchema:
                    raise
                except ModelError as error:
                    self.wrong.append(error)
        group.calls = of.calls.found
        flat.groups.append(group)
        key = group.key(outputs)
        flat.record = {TIME: group.column(TIME), **({KEY: key} if key is not None else {})}
        return outputs

    def _window(self, items: list[Item], clock_of: ClockOf) -> list[tuple[Item, Found]]:
        """Return the items that are the window: of several by DuckDB's functions the finest."""
        found: list[tuple[Item, Found]] = []
        for item in items:
            window = window_of(item.tree, clock_of, at_line(self.at, item.line))
            if window is not None:
                found.append((item, window))
        explicit = [each for each in found if each[1].explicit]
        if len({each.window for _, each in explicit}) > 1:
            raise SqlError(
                "GROUP BY names two windows",
                at_line(self.at, explicit[1][0].line),
                "keep one; other windows of the same rows are queries of their own",
            )
        chosen = min(explicit or found, key=lambda each: _size(each[1]), default=None)
        return [each for each in found if chosen and each[1].window == chosen[1].window]


@dataclass(kw_only=True)
class _Columns:
    """The columns of a group, by the SQL of what they are of the rows."""

    at: Location | None
    flat: Flat
    """What is grouped."""
    group: Group
    clock_of: ClockOf
    calls: Calls = field(default_factory=Calls)
    known: dict[str, exp.Expr] = field(default_factory=dict[str, exp.Expr])

    def add_key(self, item: Item) -> None:
        text = text_of(item.tree)
        if text in self.known:
            if item.tree is self.group.window_of:
                self.group.window_at = len(self.group.keys)
            return
        name = f"k{len(self.group.keys)}"
        self.group.keys[name] = item.tree
        self.group.named.append((item.called, name))
        self.known[text] = self.group.column(name)

    def set_window(self, item: Item, found: Found) -> None:
        self.group.window = found.window
        self.group.passed_on |= found.passed_on
        self.group.window_of = None if found.explicit else item.tree
        self.known[text_of(item.tree)] = self._start(found)

    def read(self, tree: exp.Expr, line: int | None) -> exp.Expr:
        """Return an expression over the columns of the group.

        Raises:
            SqlError: It reads a column that a group does not have.
        """
        at = at_line(self.at, line)
        known = self.known.get(text_of(tree))
        if known is not None:
            return _placed(known.copy(), line)
        if function_of(tree) is not None:
            return _placed(self.group.column(self.calls.name_of(tree, line)), line)
        if isinstance(tree, exp.Placeholder):
            return _placed(self.group.column(self._of_window(tree.name, at)), line)
        if self.group.window is not None and isinstance(tree, (*_BUCKETS, exp.Anonymous)):
            found = window_of(tree, self.clock_of, at)
            if found is not None and found.window == self.group.window:
                return _placed(self._start(found), line)
        name = function_named(tree)
        if name is not None:
            raise SqlError(
                f"{name}() is selected, and GROUP BY does not name it",
                at,
                f"add {name}(…) to GROUP BY, and select window_start and window_end",
            )
        if isinstance(tree, exp.Anonymous) and not is_function(tree.name):
            raise unknown_function(tree.name, at)
        if isinstance(tree, exp.Column) and tree.name != BATCH_TIME:
            raise self._not_grouped(tree.name.partition(".")[2], at)
        copy = tree.copy()
        for child in list(copy.iter_expressions()):
            child.replace(self.read(child, line_near(child, line)))
        return copy

    def _start(self, found: Found) -> exp.Expr:
        start = self.group.column(WINDOW_START)
        plain = found.type == "TIMESTAMP"
        return start if plain else exp.cast(start, found.type, dialect=DIALECT)

    def _of_window(self, name: str, at: Location | None) -> str:
        if self.group.window is None and self.flat.is_table:
            raise SqlError(
                f"'{name}' stands in a query over tables, which have no windows",
                at,
                "select the expression that is grouped by, such as date_trunc('hour', t)",
            )
        if self.group.window is None:
            raise SqlError(
                f"'{name}' stands in a query whose GROUP BY has no window",
                at,
                "add one to GROUP BY, such as tumble(INTERVAL 5 MINUTE)",
            )
        return name

    def _not_grouped(self, name: str, at: Location | None) -> SqlError:
        return SqlError(
            f"the column '{name}' is neither grouped nor aggregated",
            at,
            f"add it to GROUP BY, or write any_value({name}) where one value of it is enough",
        )


def _placed(tree: exp.Expr, line: int | None) -> exp.Expr:
    """Note where the expression stands that a column takes the place of."""
    for name in tree.find_all(exp.Identifier):
        if line is not None:
            name.meta["line"] = line
    return tree


def text_of(tree: exp.Expr) -> str:
    """Return the SQL of an expression as it is compared: names in lower case, no brackets."""
    copy = tree.copy().unnest()
    for name in copy.find_all(exp.Identifier):
        name.set("this", name.this.lower())
    return copy.sql(dialect=DIALECT)


def _with_windows(select: exp.Select, scope: Scope) -> exp.Select:
    """Mark `window_start` and `window_end` where they mean the window of this SELECT."""
    found = select.copy()
    clauses = (found.args.get("group"), found.args.get("having"))
    parts = [*found.expressions, *(clause for clause in clauses if clause is not None)]
    explicit = any(function_named(node) for part in parts for node in part.find_all(exp.Anonymous))
    bucketed = explicit or any(part.find(*_BUCKETS) is not None for part in parts)
    all_known = all(r.outputs is not None for r in scope.relations)
    for column in [column for part in parts for column in part.find_all(exp.Column)]:
        name = column.name.lower()
        if column.table or name not in (WINDOW_START, WINDOW_END) or _is_inside(column):
            continue
        has = any(r.outputs is not None and r.column(name) is not None for r in scope.relations)
        if explicit or (not has and (bucketed or all_known)):
            mark: exp.Expr = exp.Placeholder(this=name)
            mark.meta.update(column.this.meta)
            column.replace(exp.alias_(mark, name) if column.parent is found else mark)
    return found


def _is_inside(column: exp.Expr) -> bool:
    """Tell whether a column stands in an aggregate or in GROUP BY, where rows are not grouped."""
    above = column.parent
    while above is not None and not isinstance(above, exp.Select):
        if function_of(above) is not None or isinstance(above, exp.Group):
            return True
        above = above.parent
    return False


def _behind_aliases(part: exp.Expr, select: exp.Select, scope: Scope, of: _Columns) -> exp.Expr:
    """Write the expressions behind names that the SELECT gives its columns, in HAVING."""
    bodies: Mapping[str, exp.Expr] = {
        each.alias.lower(): each.this for each in select.expressions if each.alias
    }
    copy = exp.paren(part.copy())
    for column in list(copy.find_all(exp.Column)):
        body = bodies.get(column.name.lower())
        if body is None or column.table or _is_inside(column):
            continue
        own = (relation.column(column.name) for relation in scope.relations)
        if not any(tree is not None and text_of(tree) in of.known for tree in own):
            alone = isinstance(body, exp.Func | exp.Column)
            column.replace(body.copy() if alone else exp.paren(body.copy()))
    return copy.unnest()


def _size(found: Found) -> int:
    match found.window:
        case FixedWindow(size=size) | NamedWindow(size=size):
            return size
        case CalendarWindow(months=months):
            return months * _MONTH
        case _:
            return 0

"""The key of a record that says which group it is about."""

from collections.abc import Sequence

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.windows import WINDOW_END, WINDOW_START, SessionWindow
from kaflow_engine.model.key_formats import (
    WINDOWED_END,
    WINDOWED_KEY,
    WINDOWED_START,
    KeyFormat,
    of_value,
    window_of,
)
from kaflow_engine.plan.planner.tables.written_keys import packed_key, record_key
from kaflow_engine.sql.shape import Expr, QueryShape


def key_of_group(shape: QueryShape, form: KeyFormat | None) -> Expr:
    """Return what tells a group, with its window, from others.

    It is the grouping value, or a JSON object in the order of GROUP BY: of several values, of none,
    of NULL, or with a window, which comes last. Under a windowed format the window is apart.

    Args:
        shape: The query.
        form: How keys are written; None: as text.
    """
    group = shape.groups[-1]
    if window_of(form) is not None and group.window is not None:
        return _with_window(shape, form)
    values = {name for name, _ in group.keys}
    parts = [(called, name) for called, name in group.named if name in values]
    pairs = [(called, identifier(f"{group.alias}.{name}")) for called, name in parts]
    uses = [(group.alias, name) for _, name in parts]
    if group.window is not None:
        start = identifier(f"{group.alias}.{WINDOW_START}")
        pairs.append((WINDOW_START, f"epoch_ms({start})"))
        uses.append((group.alias, WINDOW_START))
    is_object = group.window is not None
    sql = record_key(pairs, shape.discriminator, form, is_object=is_object)
    return Expr(sql=sql, uses=tuple(sorted(uses)), line=group.line)


def _with_window(shape: QueryShape, form: KeyFormat | None) -> Expr:
    """Return a struct of the grouping values and the window.

    Of a session the end is the event time of its last record, as Kafka Streams has it.
    """
    group = shape.groups[-1]
    names = [(called, name) for called, name in group.named if name != WINDOW_START]
    pairs = [(called, identifier(f"{group.alias}.{name}")) for called, name in names]
    start, end = (identifier(f"{group.alias}.{name}") for name in (WINDOW_START, WINDOW_END))
    value = record_key(pairs, shape.discriminator, None if form is None else of_value(form))
    fields = [(WINDOWED_KEY, value), (WINDOWED_START, f"epoch_ms({start})")]
    uses = {(group.alias, name) for name in (*(name for _, name in names), WINDOW_START)}
    if isinstance(group.window, SessionWindow):
        fields.append((WINDOWED_END, f"epoch_ms({end}) - {group.window.gap}"))
        uses.add((group.alias, WINDOW_END))
    return Expr(sql=packed_key(fields), uses=tuple(sorted(uses)), line=group.line)


def is_group_key(shape: QueryShape, parts: Sequence[Expr], form: KeyFormat | None) -> bool:
    """Tell whether a column, or several, written in a format, have other values in each group."""
    group, found = shape.groups[-1], {part.sql for part in parts}
    if found == {key_of_group(shape, form).sql}:
        return True
    own = {identifier(f"{group.alias}.{name}") for _, name in group.named}
    if shape.discriminator is not None:
        own.add(shape.discriminator.expr.sql)
    return bool(found) and found == own

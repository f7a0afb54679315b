"""The format in which the keys of an output are written."""

from collections.abc import Iterator, Mapping

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import ModelError
from kaflow_engine.flow.windows import SessionWindow
from kaflow_engine.formats.types import fields_of
from kaflow_engine.model.key_formats import (
    KEY_TYPES,
    TEXT,
    WINDOWED_END,
    WINDOWED_KEY,
    WINDOWED_START,
    KeyFormat,
    PlainKeyFormat,
    WindowOfKey,
    of_value,
    window_of,
)
from kaflow_engine.model.record_columns import HIDDEN_KEY, KEY, KEY_BYTES
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.group_keys import key_of_group
from kaflow_engine.plan.planner.outputs.output import BranchParts, OutputParts
from kaflow_engine.sql.shape import OutputShape

_WRITES: Mapping[PlainKeyFormat, frozenset[str]] = {
    "int": frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT"}),
    "long": frozenset(
        {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
    ),
    "bytes": frozenset({"BLOB", TEXT}),
}
"""The types of columns that each format writes; of others any."""


def key_format(spec: PipelineSpec, output: OutputParts) -> KeyFormat:
    """Return the format of keys: what is said, else that of keys that pass as they are."""
    said = output.write.output.key_format
    if said is not None:
        return said
    if not all(map(_is_of_record, output.branches)):
        return "text"
    read: set[KeyFormat] = {
        spec.topic(branch.shape.driving.topic).key_format for branch in output.branches
    }
    form = read.pop() if len(read) == 1 else "text"
    if form == "avro":
        return "bytes" if output.key is not None and output.key.role == "own_key" else "json"
    return form


def passes_key(output: OutputParts) -> bool:
    """Tell whether a row may have no key: that is the own one of rows, or of their driving records
    as it is, by `_key AS _key`."""
    key = output.key
    return key is not None and (key.role == "own_key" or all(map(_is_of_record, output.branches)))


def _is_of_record(branch: BranchParts) -> bool:
    """Tell whether the key of rows is that of their driving records."""
    key, shape = branch.key, branch.shape
    if key is not None and key.role == "own_key":
        return key.expr.sql == identifier(f"{shape.driving.alias}.{KEY_BYTES.name}")
    if key is None or key.role != "key" or branch.groups or branch.is_table:
        return False
    return key.expr.sql == identifier(f"{shape.driving.alias}.{KEY}")


def wrong_key_formats(spec: PipelineSpec, output: OutputParts) -> Iterator[ModelError]:
    """Yield what is wrong with the format of an output's keys."""
    said, key = output.write.output.key_format, output.key
    if said is None:
        return
    place = spec.place(*output.write.at, "key_format")
    if (window := window_of(said)) is not None:
        yield from _wrong_window(spec, output, said, window)
    elif key is None:
        yield ModelError(
            f"keys are written as {said}, and these rows have none",
            place,
            "add key: <column>, or AS _key to what the key is; or remove key_format",
        )
    if key is None:
        return
    form = of_value(said)
    types = {c.type for branch in output.branches for c, _ in branch.columns if c.name == key.name}
    kinds = {_of_value(kind) for kind in types} if window is not None else types
    for kind in sorted(kinds - _WRITES.get(form, kinds)):
        yield ModelError(
            f"the key '{key.name}' is of type {kind}, and cannot be written as {said}",
            place,
            f"{_way_out(key, form)}; or write key_format: text",
        )


def _way_out(key: OutputShape, form: PlainKeyFormat) -> str:
    if key.role == "key" and key.name in (KEY, HIDDEN_KEY):
        return f"a key of one value that is {KEY_TYPES[form]} can be"
    return f"select it as {'VARCHAR' if form == 'bytes' else KEY_TYPES[form]}"


def _wrong_window(
    spec: PipelineSpec, output: OutputParts, said: KeyFormat, window: WindowOfKey
) -> Iterator[ModelError]:
    place = spec.place(*output.write.at, "key_format")
    form = of_value(said)
    if _are_windowed(output, window):
        return
    groups = [branch.groups[-1].shape if branch.groups else None for branch in output.branches]
    kinds = [None if group is None else group.window for group in groups]
    sessions = [isinstance(kind, SessionWindow) for kind in kinds]
    if not all(kinds):
        yield ModelError(
            f"keys are written as {said}, and these rows have no window",
            place,
            f"group by a window, such as tumble(INTERVAL 5 MINUTE); or write key_format: {form}",
        )
    elif any(session != (window == "session") for session in sessions):
        right, what = ("session", "sessions") if any(sessions) else ("windowed", "fixed windows")
        yield ModelError(
            f"keys are written as {said}, and the windows are {what}",
            place,
            f"write key_format: {right}_{form}",
        )
    elif not all(
        branch.key is not None and branch.key.expr.sql == key_of_group(branch.shape, said).sql
        for branch in output.branches
    ):
        given = output.write.output.key is not None
        yield ModelError(
            f"keys are written as {said}, and another key is given",
            spec.place(*output.write.at, "key") if given else spec.place(*output.write.query_at),
            "remove it: the key is then what the query groups by, with the window",
        )


def _are_windowed(output: OutputParts, window: WindowOfKey) -> bool:
    """Tell whether keys are of the type in which keys with such windows are read."""
    key, names = output.key, {WINDOWED_KEY, WINDOWED_START}
    names |= {WINDOWED_END} if window == "session" else set()
    types = {c.type for b in output.branches for c, _ in b.columns if key and c.name == key.name}
    return bool(types) and all({field.name for field in fields_of(t)} == names for t in types)


def _of_value(kind: str) -> str:
    """Return the type of what stands before the window in a key."""
    fields = {field.name: field.type for field in fields_of(kind)}
    return fields.get(WINDOWED_KEY, kind)

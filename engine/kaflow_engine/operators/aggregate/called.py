"""What people call groups, in dead letters about their results."""

import json

from kaflow_engine.flow.flow import instant
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.operators.aggregate.entries import read_entry
from kaflow_engine.operators.aggregate.workspace import Change


def change_called(aggregate: Aggregate, change: Change) -> str:
    """Return what people call a group and its window."""
    group = _group(aggregate, change.key)
    if change.start is None or change.end is None:
        return group
    return f"{group}, window {_at(change.start)} to {_at(change.end)}"


def group_called(aggregate: Aggregate, entry: bytes) -> str:
    """Return what people call a group, by the key of its entry, and its window."""
    key, start = read_entry(aggregate, entry)
    group = _group(aggregate, key)
    return group if start is None else f"{group}, window from {_at(start)}"


def _group(aggregate: Aggregate, key: bytes) -> str:
    values: list[str | None] = json.loads(key[1:])
    pairs = zip(aggregate.keys, values, strict=True)
    shown = ", ".join(f"{key.name} = {'NULL' if t is None else t}" for key, t in pairs)
    return f"group ({shown})" if shown else "the only group"


def _at(milliseconds: int) -> str:
    """Return an instant as people write it; event times may be beyond what dates can say."""
    try:
        return instant(milliseconds)
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"

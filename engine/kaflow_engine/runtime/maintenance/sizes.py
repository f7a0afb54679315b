"""Entries and bytes of a state by step, side and partition."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.graph import state_names
from kaflow_engine.operators.inspect.state_sides import describe, operator_called, state_sides
from kaflow_engine.runtime.maintenance.view import StateView, entries_between
from kaflow_engine.state.binary_columns import heads

_HEAD = np.dtype([("shard", "u1"), ("side", "u1")])


@dataclass(slots=True)
class SideSize:
    """One side of one step."""

    step: int
    operator: str
    side: str
    what: str
    parts: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """State partition to entries and bytes of keys and values."""

    @property
    def entries(self) -> int:
        """Of all partitions."""
        return sum(entries for entries, _ in self.parts.values())

    @property
    def bytes(self) -> int:
        """Of all partitions."""
        return sum(size for _, size in self.parts.values())

    def data(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "step": self.step,
            "operator": self.operator,
            "side": self.side,
            "what": self.what,
            "entries": self.entries,
            "bytes": self.bytes,
            "partitions": [
                {"partition": part, "entries": entries, "bytes": size}
                for part, (entries, size) in sorted(self.parts.items())
            ],
        }


def sizes(view: StateView) -> Iterator[SideSize]:
    """Yield all sides that have entries, by step and side byte."""
    plan = view.moment.plan
    for step in state_names(plan):
        found = {
            side.byte: SideSize(step, operator_called(step, plan), side.name, describe(side, plan))
            for side in state_sides(plan)
            if side.step == step
        }
        for part in range(plan.partitions):
            counts, lengths = _count(view, step, part)
            for byte, size in found.items():
                size.parts[part] = int(counts[byte]), int(lengths[byte])
        yield from (size for size in found.values() if size.entries)


def _count(view: StateView, step: int, part: int) -> tuple[Any, Any]:
    """Return entries and bytes by side byte."""
    counts, lengths = np.zeros(256, np.int64), np.zeros(256, np.int64)
    for found in entries_between(view.partition(step, part), b"", None):
        keys, values = pa.array(found.keys, pa.binary()), pa.array(found.values, pa.binary())
        sides = heads(keys, _HEAD)["side"]
        both = pc.add(pc.binary_length(keys), pc.binary_length(values)).to_numpy()
        counts += np.bincount(sides, minlength=256)
        lengths += np.bincount(sides, both, 256).astype(np.int64)
    return counts, lengths

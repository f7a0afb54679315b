"""Records of a batch that come to windows which have ended, so that both leave as one change."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.windows import SessionWindow
from kaflow_engine.operators.aggregate.entries import Group, entries_of
from kaflow_engine.operators.aggregate.windows import Numbers, ends_of, windows_of
from kaflow_engine.operators.aggregate.workspace import Work, texts


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRows:
    """The windows that records of a batch come to behind their end."""

    entries: frozenset[bytes] = frozenset()
    """The keys of their entries; of sessions none."""
    times: Mapping[bytes, Numbers] = field(default_factory=dict[bytes, Numbers])
    """Of sessions the event times of all records, by grouping values behind the shard byte."""
    gap: int = 0
    """Of sessions, in milliseconds."""

    def change(self, entry: bytes, key: bytes, start: int | None, group: Group) -> bool:
        """Tell whether one of them changes a window.

        Args:
            entry: The key of its entry.
            key: Its grouping values behind the shard byte.
            start: Its start.
            group: It itself.
        """
        if entry in self.entries:
            return True
        times = self.times.get(key)
        if times is None or start is None:
            return False
        return bool(((times >= start - self.gap) & (times <= group.last + self.gap)).any())

    def apart(self, due: pa.BinaryArray) -> tuple[pa.BinaryArray, list[pa.BinaryArray]]:
        """Return the windows that are due and that they do not change, and those that they may."""
        if not self.entries:
            return due, []
        changed = pc.is_in(due, pa.array(self.entries, pa.binary()))
        return due.filter(pc.invert(changed)), [due.filter(changed)]


def late_rows(work: Work, rows: pa.Table) -> LateRows:
    """Return which windows records come to that end in this batch, or have ended.

    Args:
        work: The aggregate.
        rows: Schema EXCHANGE, those of records.
    """
    aggregate = work.aggregate
    if aggregate.leaves != "ended" or aggregate.window is None or not rows.num_rows:
        return LateRows()
    times, keys = rows["ts"].to_numpy(), rows["key"].combine_chunks()
    if isinstance(aggregate.window, SessionWindow):
        by_key = keys.dictionary_encode()
        numbers = by_key.indices.to_numpy()
        names = texts(pa.chunked_array([by_key.dictionary]))
        order = np.argsort(numbers, kind="stable")
        stops = np.cumsum(np.bincount(numbers, minlength=len(names)))[:-1]
        found = dict(zip(names, np.split(times[order], stops), strict=True))
        return LateRows(times=found, gap=aggregate.window.gap)
    places, starts = windows_of(aggregate, aggregate.window, rows)
    ends = ends_of(aggregate.window, starts)
    ended = (ends <= work.watermark) & (ends + aggregate.grace > work.watermark)
    entries = entries_of(keys.take(pa.array(places[ended])), starts[ended])
    return LateRows(entries=frozenset(entries.to_pylist()))

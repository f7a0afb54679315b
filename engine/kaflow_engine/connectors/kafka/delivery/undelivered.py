"""What is left to deliver of a batch that runs again: rows that no marker covers.

A marker covers a delivery partition up to a batch, or the first rows of it in that batch. Rows of a
delivery partition have one order, so that "the first" are the same rows in every try; a checksum of
them proves it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.connectors.kafka.delivery.producer import SinkSettings
from kaflow_engine.errors import StateError
from kaflow_engine.state.hints import NEW_ID_REPEATS


class Checksum:
    """A checksum of rows in their order, whatever the pieces in which they come."""

    def __init__(self) -> None:
        self._parts = [sha256() for _ in range(5)]

    def add(self, rows: pa.Table) -> None:
        """Take further rows of schema OUTPUT."""
        columns = [rows["timestamp"].to_numpy()]
        for name in ("key", "value"):
            column = rows[name].combine_chunks()
            lengths = pc.fill_null(pc.binary_length(column), -1).to_numpy(False)
            columns += [lengths, _content(pc.fill_null(column, b""))]
        for part, column in zip(self._parts, columns, strict=True):
            part.update(column.tobytes())

    @property
    def text(self) -> str:
        """The checksum, 16 hexadecimal digits."""
        whole = b"".join(part.digest() for part in self._parts)
        return sha256(whole).hexdigest()[:16]


class Todo:
    """The rows that are left, and what markers say when some of them are delivered."""

    def __init__(self, rows: pa.Table, skipped: Collection[int] = ()) -> None:
        self.rows = rows
        self.skipped = tuple(sorted(skipped))
        """Delivery partitions that have been delivered, in part or wholly."""
        self._done: Counter[int] = Counter()
        self._sums: dict[int, Checksum] = {}
        self._left = Counter(counts(rows))

    def begin_behind(self, slot: int, rows: int, checksum: Checksum) -> None:
        """Take note of the first rows of a delivery partition, which were delivered before."""
        self._done[slot], self._sums[slot] = rows, checksum

    def delivered(self, piece: pa.Table) -> Iterator[tuple[int, int, str]]:
        """Take note of the next rows; yield delivery partition, its rows so far, their checksum.

        The checksum is empty where no further rows come.
        """
        for slot, count in sorted(counts(piece).items()):
            self._done[slot] += count
            self._left[slot] -= count
            text = ""
            if self._left[slot]:
                known = self._sums.setdefault(slot, Checksum())
                known.add(piece.filter(pc.equal(piece["slot"], slot)))
                text = known.text
            yield slot, self._done[slot], text


def undelivered(sink: SinkSettings, batch: int, rows: pa.Table, alone: bool) -> Todo:
    """Return what no marker covers.

    Args:
        sink: Holds the markers.
        batch: The batch.
        rows: Schema OUTPUT, those of a delivery partition in their order.
        alone: Whether these are all rows of the batch.

    Raises:
        StateError: The batch does not have the rows that were delivered of it.
    """
    known = {slot: found for slot, found in sink.delivered.items() if found.batch >= batch}
    if not known:
        return Todo(rows)
    if sink.same_rows:
        require_same(sink, batch, counts(rows), alone)
    whole = [slot for slot, found in known.items() if found.batch > batch or not found.digest]
    covered = pc.is_in(rows["slot"], value_set=pa.array(whole, pa.int32())).to_numpy()
    slots = rows["slot"].to_numpy()
    seen: dict[int, Checksum] = {}
    for slot in known.keys() - set(whole):
        places = np.flatnonzero(slots == slot)[: known[slot].rows]
        covered[places] = True
        seen[slot] = Checksum()
        seen[slot].add(rows.take(pa.array(places)))
        if sink.same_rows and seen[slot].text != known[slot].digest:
            raise StateError(
                f"batch {batch} of pipeline '{sink.pipeline_id}' has delivered the first "
                f"{known[slot].rows:,} rows of partition {slot}, and they are others now that it "
                "runs again: its inputs, or what it looks up, are not what they were",
                hint=NEW_ID_REPEATS,
            )
    todo = Todo(rows.filter(pa.array(~covered)), set(np.unique(slots[covered]).tolist()))
    for slot, checksum in seen.items():
        todo.begin_behind(slot, known[slot].rows, checksum)
    return todo


def require_same(sink: SinkSettings, batch: int, found: Mapping[int, int], alone: bool) -> None:
    """Refuse a batch that has other rows than were delivered of it.

    Args:
        sink: Holds the markers.
        batch: The batch.
        found: Its rows, by delivery partition.
        alone: Whether a delivery partition that is not in `found` has no rows.

    Raises:
        StateError: A delivery partition has more rows or fewer, or none any more.
    """
    for slot, before in sorted(sink.delivered.items()):
        count = found.get(slot, 0)
        if before.batch != batch or not (alone or slot in found):
            continue
        if count <= before.rows if before.digest else count != before.rows:
            raise StateError(
                f"batch {batch} of pipeline '{sink.pipeline_id}' has delivered {before.rows:,} "
                f"rows of partition {slot}, and has {count:,} now that it runs again: its inputs, "
                "or what it looks up, are not what they were",
                hint=NEW_ID_REPEATS,
            )


def counts(rows: pa.Table) -> dict[int, int]:
    """Return the rows of each delivery partition."""
    counted = pc.value_counts(rows["slot"])
    return dict(
        zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
    )


def _content(column: pa.BinaryArray) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the bytes of all values of a column without nulls, one behind the other."""
    _, offsets, data = column.buffers()
    if data is None or not len(column):
        return np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]

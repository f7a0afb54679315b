"""A source of made-up records: the same offset is the same record, whenever it is read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kaflow_engine.connectors.generator.draws import drawn
from kaflow_engine.connectors.sources.contract import KEPT, SourcePlace, StartPolicy
from kaflow_engine.connectors.sources.records import json_values, record_batch, table_of
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.sources import GeneratorParams
from kaflow_engine.model.columns import Column
from kaflow_engine.state.storage.store import NameTaken

CHUNK = 16_384
"""Records of one Arrow batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorRead:
    """A range of records; see `RangeRead`."""

    source: str
    params: GeneratorParams
    begin: int
    """The timestamp of the first record of all, epoch milliseconds."""
    start: int
    end: int

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """Yield the records."""
        for first in range(self.start, self.end, CHUNK):
            yield self._some(first, min(first + CHUNK, self.end))

    def _some(self, first: int, end: int) -> pa.RecordBatch:
        offsets = np.arange(first, end, dtype=np.uint64)
        late = np.floor(offsets.astype(np.float64) * (1000 / self.params.rate))
        stamps = pa.array(self.begin + late.astype(np.int64))
        columns = {
            each.name: drawn(self.params.seed, each, offsets, stamps) for each in self.params.values
        }
        values = _as_json(pa.table(columns))
        return record_batch(self.source, first, values, stamps, "generator")


class GeneratorSource:
    """Records that appear at a rate, in one partition.

    Args:
        params: Its settings.
        place: Where it is kept when the first record appeared.
    """

    finite = False

    def __init__(self, params: GeneratorParams, place: SourcePlace) -> None:
        self._params, self._place = params, place
        self._begin = params.start if params.start is not None else _kept_begin(place)

    @property
    def bounded(self) -> bool:
        """Whether all records have appeared that ever will."""
        most = self._params.records
        return most is not None and self.latest()[0] == most

    def partitions(self) -> Sequence[int]:
        """Return the one there is."""
        return (0,)

    def latest(self) -> Mapping[int, int]:
        """Return how many records have appeared."""
        return {0: self._until(self._place.clock() + 1)}

    def start(self, policy: StartPolicy) -> Mapping[int, int]:
        """Return where records begin, end, or are as late as a time."""
        if policy == "earliest":
            return {0: 0}
        end = self.latest()
        return end if policy == "latest" else {0: min(self._until(policy), end[0])}

    def reads(self, start: Mapping[int, int], end: Mapping[int, int]) -> Sequence[GeneratorRead]:
        """Return what tasks read a range with."""
        if start[0] >= end[0]:
            return ()
        read = GeneratorRead(
            source=self._place.name,
            params=self._params,
            begin=self._begin,
            start=start[0],
            end=end[0],
        )
        return (read,)

    def found(self, start: Mapping[int, int], end: Mapping[int, int]) -> int:
        """Return the timestamp of the first record of all."""
        return self._begin

    def know(self, found: int) -> None:
        """Go on with what began on another machine."""
        if self._params.start is None and found != self._begin:
            self._place.store.put(_name(self._place), str(found).encode())
            self._begin = found

    def forget(self, before: Mapping[int, int], now: int) -> None:
        """Do nothing: it keeps no records."""

    def read(self, start: Mapping[int, int], end: Mapping[int, int]) -> pa.Table:
        """Return the records of a range."""
        return table_of(self.reads(start, end))

    def _until(self, time: int) -> int:
        """Return how many records have a timestamp before a time."""
        if time <= self._begin:
            return 0
        found = int((time - self._begin) * self._params.rate / 1000)
        while found and self._stamp(found - 1) >= time:
            found -= 1
        while self._stamp(found) < time:
            found += 1
        most = self._params.records
        return found if most is None else min(found, most)

    def _stamp(self, offset: int) -> int:
        return self._begin + int(offset * (1000 / self._params.rate))


def _kept_begin(place: SourcePlace) -> int:
    """Return when the first record of a state appeared: now, the first time."""
    with suppress(NameTaken):
        place.store.create(_name(place), str(place.clock()).encode())
    return int(place.store.get(_name(place)))


def _name(place: SourcePlace) -> str:
    return f"{KEPT}/{place.name}/begin.json"


def _as_json(rows: pa.Table) -> pa.Array:
    kinds = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}
    pairs = [
        (Column(field.name, kinds.get(field.type, "VARCHAR")), identifier(field.name))
        for field in rows.schema
    ]
    return json_values(rows, pairs)

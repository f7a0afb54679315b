"""The positions of a pipeline in the table of another program."""

import time
from collections.abc import Mapping
from importlib import import_module

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.positions.contract import PositionTable, offset_of, position_text
from kaflow_engine.model.brought.positions import PositionParams

_TABLES: Mapping[str, str] = {
    "postgres": "kaflow_engine.connectors.positions.postgres:PostgresPositions",
    "sqlite": "kaflow_engine.connectors.positions.sqlite:SQLitePositions",
}
"""`table` of `PositionParams` → module and class of a `PositionTable`."""


class KeptPositions:
    """Reads positions, and writes those that have changed."""

    def __init__(self, params: PositionParams, table: PositionTable) -> None:
        self._params, self._table = params, table
        self._written: dict[str, int] = {}

    def __str__(self) -> str:
        return f"the positions of '{self._params.namespace}' in {self._table}"

    def read(self, counts: Mapping[str, int]) -> dict[str, dict[int, int]]:
        """Return the next offsets of partitions, where all sources of a topic have one: the least.

        Args:
            counts: Topic to its partitions.

        Raises:
            SinkError: The table cannot be read.
        """
        places = {
            (topic, partition): self._params.keys(topic, partition)
            for topic, count in counts.items()
            for partition in range(count)
        }
        every = [key for keys in places.values() for key in keys]
        data = self._table.read(self._params.namespace, every)
        found: dict[str, dict[int, int]] = {}
        for (topic, partition), keys in places.items():
            if all(key in data for key in keys):
                offset = min(offset_of(key, data[key]) for key in keys)
                found.setdefault(topic, {})[partition] = offset
        return found

    def commit(self, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Write the next offsets of partitions.

        Raises:
            SinkError: The table cannot be written.
        """
        topics = dict(self._params.readers)
        reached = {
            key: offset
            for topic, places in offsets.items()
            if topic in topics
            for partition, offset in places.items()
            for key in self._params.keys(topic, partition)
        }
        changed = {key: at for key, at in reached.items() if self._written.get(key) != at}
        now = time.time_ns() // 1_000_000
        if changed:
            data = {key: position_text(offset, now) for key, offset in changed.items()}
            self._table.write(self._params.namespace, data)
            self._written |= changed


def kept_positions(params: PositionParams | None, connections: Connections) -> KeptPositions | None:
    """Return the positions of a pipeline; None: no table has any."""
    if params is None or params.table is None:
        return None
    module, _, attribute = _TABLES[params.table].partition(":")
    table: PositionTable = getattr(import_module(module), attribute)(connections)
    return KeptPositions(params, table)

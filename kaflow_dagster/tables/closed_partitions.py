"""Partitions that a stream has finished, which become materializations of its table."""

from collections.abc import Iterator, Set
from pathlib import Path

import dagster as dg

from kaflow_dagster.assets.translator import partitions_of
from kaflow_engine.api.plan import TablePart, partition_of


class ClosedPartitions:
    """Tells each partition once, when the stream has written all its rows."""

    def __init__(self, key: dg.AssetKey, table: TablePart, known: Set[str]) -> None:
        """Begin where earlier runs ended.

        Args:
            key: The asset of the table.
            table: Where it is.
            known: The partitions that were reported, or filled by a backfill.
        """
        self._key, self._table = key, table
        self._known = set(known)
        self._first = partitions_of(table).get_first_partition_key() or ""
        self._looked = ""

    def since(self, settled: int | None) -> Iterator[dg.AssetMaterialization]:
        """Yield what has closed since the last call.

        Args:
            settled: Up to when the table has all rows, in epoch milliseconds; None: not known.
        """
        if settled is None:
            return
        until = partition_of(settled, self._table.partition)
        if until == self._looked:
            return
        self._looked = until
        from kaflow_engine.api.outputs import partition_rows  # it imports delta-rs

        for partition, rows in sorted(partition_rows(Path(self._table.path)).items()):
            if self._first <= partition < until and partition not in self._known:
                self._known.add(partition)
                yield dg.AssetMaterialization(
                    asset_key=self._key,
                    partition=partition,
                    metadata={
                        "kaflow/mode": dg.MetadataValue.text("stream"),
                        "dagster/partition_row_count": dg.MetadataValue.int(rows),
                    },
                )

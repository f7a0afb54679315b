"""Rows into a table: blocks with tokens; rows that cannot be kept, or are refused, stand alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kaflow_engine.connectors.clickhouse.client import Server
from kaflow_engine.connectors.clickhouse.errors import RowsRefused
from kaflow_engine.connectors.clickhouse.names import Names, name, text
from kaflow_engine.connectors.contract import Output, Refused
from kaflow_engine.connectors.rows_in_notes import compressed
from kaflow_engine.connectors.slots import Places
from kaflow_engine.connectors.tables.columns import (
    key_columns,
    key_sql,
    with_key,
    written_columns,
)
from kaflow_engine.connectors.tables.faults import anywhere, sound_rows
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import DELETED
from kaflow_engine.formats.types import Decimal, Scalar, Type
from kaflow_engine.formats.types import parse_type as read
from kaflow_engine.model.columns import Column

_BLOCK = 100_000
"""Rows of a block; the server makes one part of it in each partition of the table."""
_SETTINGS = (
    "async_insert = 0, insert_deduplicate = 1, input_format_null_as_default = 0, "
    "input_format_arrow_allow_missing_columns = 0"
)
_FIRST, _LAST = "1900-01-01 00:00:00", "2299-12-31 23:59:59.999999"
"""Of times that the server computes with; it keeps others, and shows wrong ones."""


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writes rows of one delivery partition of one batch."""

    output: Output
    token: str
    """What the blocks of the partition and the batch are called."""
    version: int
    """Of the rows, where they replace each other."""

    def write(self, rows: pa.Table) -> list[Refused]:
        """Write rows, those of a key in their order.

        Args:
            rows: The columns of the output, with those of `flow.records`.

        Returns:
            Rows that were not taken, by place; the others are written.

        Raises:
            ClickHouseAway: The server does not answer; blocks may be there, which come again.
            ClickHouseUnfit: It refuses all rows.
        """
        output, columns = self.output, written_columns(self.output)
        rows, keys = with_key(output, rows), key_columns(output)
        places, refused = sound_rows(output, rows, [*_faults(columns)])
        if not keys:
            refused += self._blocks(rows, places, columns, "+")
        else:
            went = rows[DELETED].to_numpy()[places]
            rows = self._versioned(rows, keys)
            refused += self._blocks(rows, places[~went], columns, "+")
            refused += self._blocks(rows, places[went], keys, "-")
        return sorted(refused, key=lambda one: one.row)

    def _versioned(self, rows: pa.Table, keys: Sequence[Column]) -> pa.Table:
        """Add the version, whether a row goes, and the key of those that do."""
        listed = (f"{key_sql(self.output, key)} AS {identifier(key.name)}" for key in keys)
        found = query(f"SELECT {', '.join(listed)} FROM rows", rows)
        version = pa.array(np.full(rows.num_rows, self.version, np.uint64))
        gone = pa.array(rows[DELETED].to_numpy().astype(np.uint8))
        for key in keys:
            place = rows.schema.get_field_index(key.name)
            rows = rows.set_column(place, key.name, found[key.name])
        own = Names(self.output).own
        return rows.append_column(own[0], version).append_column(own[1], gone)

    def _blocks(
        self, rows: pa.Table, places: Places, columns: tuple[Column, ...], sign: str
    ) -> Iterator[Refused]:
        for start in range(0, len(places), _BLOCK):
            yield from self._block(rows, places[start : start + _BLOCK], columns, sign)

    def _block(
        self, rows: pa.Table, places: Places, columns: tuple[Column, ...], sign: str
    ) -> Iterator[Refused]:
        """Write some rows at once; where one of them is refused, each half on its own."""
        names = [column.name for column in columns]
        if self.output.changes:
            names += Names(self.output).own
        # The same rows have the same token in each try: they stand in one order.
        token = f"{self.token}/{sign}{places[0]}-{places[-1]}"
        insert = (
            f"INSERT INTO {Names(self.output).table} ({', '.join(map(name, names))}) SETTINGS "
            f"{_SETTINGS}, insert_deduplication_token = {text(token)} FORMAT ArrowStream"
        )
        block = rows.select(names).take(pa.array(places))
        try:
            Server.of(self.output).run("writing rows", insert, compressed(block.combine_chunks()))
        except RowsRefused as error:
            if len(places) == 1:
                yield Refused(int(places[0]), error.error, error.why)
                return
            middle = len(places) // 2
            yield from self._block(rows, places[:middle], columns, sign)
            yield from self._block(rows, places[middle:], columns, sign)


def _faults(columns: Sequence[Column]) -> Iterator[tuple[str, str]]:
    for column in columns:
        sql, kind = identifier(column.name), read(column.type)
        if found := anywhere(_fault, sql, kind):
            what = "is a time before 1900 or after 2299"
            if not isinstance(kind, Scalar):
                what = (
                    "is, or holds, a list, map or struct that is NULL, or a time out of 1900 to "
                    "2299"
                )
            yield found, f"column '{column.name}' {what}, which ClickHouse does not keep"


def _fault(sql: str, kind: Type) -> str | None:
    if not isinstance(kind, Scalar):
        return None if isinstance(kind, Decimal) else f"{sql} IS NULL"
    if not kind.name.startswith(("DATE", "TIMESTAMP")):
        return None
    zone, offset = ("TIMESTAMPTZ", "+00") if "ZONE" in kind.name else ("TIMESTAMP", "")
    first, last = (f"{zone} '{each}{offset}'" for each in (_FIRST, _LAST))
    return f"CAST({sql} AS {zone}) NOT BETWEEN {first} AND {last}"

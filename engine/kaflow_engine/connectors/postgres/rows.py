"""Rows into a table: COPY, or COPY and a merge; rows that the server refuses are found alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kaflow_engine.connectors.contract import Output, Refused
from kaflow_engine.connectors.postgres.client import driver, message_of
from kaflow_engine.connectors.postgres.errors import is_of_rows
from kaflow_engine.connectors.postgres.merged.before import left_of, with_before
from kaflow_engine.connectors.postgres.merged.conflicts import (
    THERE,
    conflict_sql,
    counts_each,
    rounds_of,
)
from kaflow_engine.connectors.postgres.names import Names, statement
from kaflow_engine.connectors.postgres.types import created_as, row_text
from kaflow_engine.connectors.slots import Places
from kaflow_engine.connectors.tables.columns import (
    gone_sql,
    key_columns,
    with_key,
    written_columns,
)
from kaflow_engine.connectors.tables.faults import sound_rows
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import DELETED

if TYPE_CHECKING:
    from psycopg import Connection

_CAME, _WENT = "kaflow_came", "kaflow_went"
"""Temporary tables: rows that replace others, and keys of rows that go."""


class RowWriter:
    """Writes the rows of one output within a transaction that is open."""

    def __init__(self, connection: "Connection[Any]", output: Output) -> None:
        self._connection, self._output, self._names = connection, output, Names(output)
        self._columns, self._keys = written_columns(output), key_columns(output)

    def write(self, rows: pa.Table) -> list[Refused]:
        """Write rows, those of a key in their order.

        Args:
            rows: The columns of the output, with those of `flow.records`.

        Returns:
            Rows that were not taken, by place; the others are written.
        """
        rows = with_key(self._output, rows)
        each = self._output.changes and counts_each(self._output)
        places, refused = sound_rows(self._output, rows, each=each)
        if self._output.changes:
            self._create_staging()
        lines = _Lines.of(self._output, rows)
        for some in rounds_of(rows, places) if each else (places,):
            refused += self._written(lines, some)
        return sorted(refused, key=lambda one: one.row)

    def _written(self, lines: "_Lines", places: Places) -> Iterator[Refused]:
        """Write some rows at once; where one of them is refused, each half on its own."""
        if not len(places):
            return
        psycopg = driver()
        try:
            with self._connection.transaction():
                self._apply(lines, places)
                # What is deferred is checked here, where the row is still known.
                self._run("SET CONSTRAINTS ALL IMMEDIATE")
        except psycopg.Error as error:
            if not is_of_rows(error.sqlstate or ""):
                raise
            if len(places) == 1:
                yield Refused(int(places[0]), type(error).__name__, message_of(error))
                return
            middle = len(places) // 2
            yield from self._written(lines, places[:middle])
            yield from self._written(lines, places[middle:])

    def _apply(self, lines: "_Lines", places: Places) -> None:
        names = self._names
        if not self._keys:
            self._copy(f"{names.table} ({names.listed})", lines.of_rows(places))
            return
        keys = [identifier(key.name) for key in self._keys]
        went = places[lines.went[places]]
        came = places[~lines.went[places]]
        if len(went):
            self._copy(_WENT, lines.of_keys(went))
            same = " AND ".join(f"t.{key} = w.{key}" for key in keys)
            if (left := left_of(self._output, _WENT)) is not None:
                back, others = left
                self._run(back)
                same = f"{same} AND {others}"
            self._run(f"DELETE FROM {names.table} AS t USING {_WENT} AS w WHERE {same}")
            self._run(f"TRUNCATE {_WENT}")
        if len(came):
            self._copy(f"{_CAME} ({names.listed})", lines.of_rows(came))
            others = [column for column in self._columns if column not in self._keys]
            self._run(
                f"INSERT INTO {names.table} AS {THERE} ({names.listed}) "
                f"{with_before(self._output, self._columns, _CAME)} "
                f"ON CONFLICT ({', '.join(keys)}) DO {conflict_sql(self._output, others)}"
            )
            self._run(f"TRUNCATE {_CAME}")

    def _create_staging(self) -> None:
        """Create the temporary tables, which go with the transaction."""
        for name, columns in ((_CAME, self._columns), (_WENT, self._keys)):
            listed = ", ".join(f"{identifier(c.name)} {created_as(c.type)}" for c in columns)
            self._run(f"CREATE TEMP TABLE IF NOT EXISTS {name} ({listed}) ON COMMIT DROP")

    def _run(self, text: str) -> None:
        self._connection.execute(statement(text))

    def _copy(self, into: str, lines: bytes) -> None:
        with (
            self._connection.cursor() as cursor,
            cursor.copy(statement(f"COPY {into} FROM STDIN")) as copy,
        ):
            copy.write(lines)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Rows as COPY reads them."""

    rows: pa.Array
    keys: pa.Array | None
    went: np.ndarray[tuple[int], np.dtype[np.bool_]]
    """Whether a row goes."""

    @staticmethod
    def of(output: Output, rows: pa.Table) -> "_Lines":
        keys = [(gone_sql(output, key), key.type) for key in key_columns(output)]
        line = row_text([(identifier(c.name), c.type) for c in written_columns(output)])
        wanted = [f"{line} AS line", f"{identifier(DELETED)} AS went"]
        if keys:
            wanted.append(f"CASE WHEN {identifier(DELETED)} THEN {row_text(keys)} END AS key")
        found = query(f"SELECT {', '.join(wanted)} FROM rows", rows)
        return _Lines(
            rows=found["line"].combine_chunks(),
            keys=found["key"].combine_chunks() if keys else None,
            went=found["went"].to_numpy(zero_copy_only=False).astype(np.bool_),
        )

    def of_rows(self, places: Places) -> bytes:
        """Return the lines of some rows."""
        return _joined(self.rows.take(pa.array(places)))

    def of_keys(self, places: Places) -> bytes:
        """Return the keys of some rows that go."""
        assert self.keys is not None
        return _joined(self.keys.take(pa.array(places)))


def _joined(lines: pa.Array) -> bytes:
    return "".join(f"{line}\n" for line in lines.to_pylist()).encode()

"""Rows into a table: COPY, or COPY and a merge; rows that the server refuses are found alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.postgres.client import driver, message_of
from kaflow_engine.connectors.postgres.errors import is_of_rows
from kaflow_engine.connectors.postgres.names import Names, statement
from kaflow_engine.connectors.postgres.types import created_as, key_text, row_text
from kaflow_engine.connectors.slots import Places
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import DELETED, KEY

if TYPE_CHECKING:
    from psycopg import Connection

_CAME, _WENT = "kaflow_came", "kaflow_went"
"""Temporary tables: rows that replace others, and keys of rows that go."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that the server does not take."""

    place: int
    """Among the rows that were given."""
    error: str
    why: str


class RowWriter:
    """Writes the rows of one output within a transaction that is open."""

    def __init__(self, connection: "Connection[Any]", output: Output) -> None:
        self._connection, self._output, self._names = connection, output, Names(output)

    def write(self, rows: pa.Table) -> list[Refusal]:
        """Write rows, those of a key in their order.

        Args:
            rows: The columns of the output, with those of `flow.records`.

        Returns:
            Rows that were not taken, by place; the others are written.
        """
        if self._output.key is not None and not any(
            column.name == self._output.key for column in self._output.columns
        ):
            rows = rows.append_column(self._output.key, rows[KEY])
        if self._output.changes:
            self._create_staging()
        places = _last_of_each_key(rows) if self._output.changes else np.arange(rows.num_rows)
        return sorted(self._written(_Lines.of(self._names, rows), places), key=lambda r: r.place)

    def _written(self, lines: "_Lines", places: Places) -> Iterator[Refusal]:
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
                yield Refusal(int(places[0]), type(error).__name__, message_of(error))
                return
            middle = len(places) // 2
            yield from self._written(lines, places[:middle])
            yield from self._written(lines, places[middle:])

    def _apply(self, lines: "_Lines", places: Places) -> None:
        names = self._names
        if names.key is None:
            self._copy(f"{names.table} ({names.listed})", lines.of_rows(places))
            return
        key = identifier(names.key.name)
        went = places[lines.went[places]]
        came = places[~lines.went[places]]
        if len(went):
            self._copy(_WENT, lines.of_keys(went))
            self._run(f"DELETE FROM {names.table} AS t USING {_WENT} AS w WHERE t.{key} = w.{key}")
            self._run(f"TRUNCATE {_WENT}")
        if len(came):
            self._copy(f"{_CAME} ({names.listed})", lines.of_rows(came))
            others = [c for c in names.columns if c.name != names.key.name]
            named = [identifier(c.name) for c in others]
            sets = ", ".join(f"{name} = excluded.{name}" for name in named)
            self._run(
                f"INSERT INTO {names.table} ({names.listed}) SELECT {names.listed} FROM {_CAME} "
                f"ON CONFLICT ({key}) DO {f'UPDATE SET {sets}' if sets else 'NOTHING'}"
            )
            self._run(f"TRUNCATE {_CAME}")

    def _create_staging(self) -> None:
        """Create the temporary tables, which go with the transaction."""
        key = self._names.key
        assert key is not None
        columns = (f"{identifier(c.name)} {created_as(c.type)}" for c in self._names.columns)
        own = f"{identifier(key.name)} {created_as(key.type)}"
        for name, listed in ((_CAME, ", ".join(columns)), (_WENT, own)):
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
    def of(names: Names, rows: pa.Table) -> "_Lines":
        wanted = [f"{row_text(names.columns)} AS line", f"{identifier(DELETED)} AS went"]
        if names.key is not None:
            gone = f"CASE WHEN {identifier(DELETED)} THEN {key_text(names.key)} END AS key"
            wanted.append(gone)
        found = query(f"SELECT {', '.join(wanted)} FROM rows", rows)
        return _Lines(
            rows=found["line"].combine_chunks(),
            keys=found["key"].combine_chunks() if names.key is not None else None,
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


def _last_of_each_key(rows: pa.Table) -> Places:
    """Return the places of the rows that stay in force, in their order."""
    keys = rows[KEY].combine_chunks().dictionary_encode()
    last = np.empty(len(keys.dictionary), np.int64)
    last[keys.indices.to_numpy()] = np.arange(rows.num_rows)  # numpy keeps the last write
    return np.sort(last)


def only(rows: pa.Table, places: Sequence[int] | Places) -> pa.Table:
    """Return some rows."""
    return rows.take(pa.array(places, pa.int64()))

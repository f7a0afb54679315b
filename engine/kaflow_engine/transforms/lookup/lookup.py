"""Rows with what a table of a database has for them: what it answers is kept first."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.connectors.postgres.lookup import PostgresRows
from kaflow_engine.duck.queries import cursor, query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.transforms import LookupParams, Transform
from kaflow_engine.formats.contract import format_of, no_schema
from kaflow_engine.operators.transform.contract import Failure, TransformBatch, Transformed
from kaflow_engine.state.kept import KEPT

_AT_ONCE = 10_000
"""Values that one query asks for."""
_MOST = 200_000
"""Answers that a process remembers of one table, where they may be used again."""

_known: dict[tuple[str, ...], dict[str, tuple[float, str]]] = {}
"""By look-up: by values, when they were asked for, and the answer."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """Looks up the rows of one hand-over."""

    transform: Transform
    params: LookupParams

    def __call__(self, rows: pa.Table, batch: TransformBatch) -> Transformed:
        """Return rows with the columns of the table: as many as have the values of a row.

        Raises:
            SourceAway: The database does not answer.
            SourceUnfit: It refuses.
        """
        keys = self._keys(rows)
        wanted = keys.filter(keys.is_valid()).unique()
        kept = batch.answers.kept_rows(self._name)
        missing = wanted.filter(pc.invert(pc.is_in(wanted, kept["key"].combine_chunks())))
        if len(missing):
            asked = self._asked(missing.to_pylist(), batch)
            batch.answers.keep_rows(self._name, asked)
            kept = pa.concat_tables([kept, asked])
        return self._joined(rows, keys, kept)

    @property
    def _name(self) -> str:
        """What answers are kept under: those by other columns are others."""
        by = sha256(json.dumps([self.params.on, repr(self.params.table)]).encode())
        return f"{self.transform.name}-{by.hexdigest()[:8]}"

    def _keys(self, rows: pa.Table) -> pa.Array:
        """Return the values of each row as JSON of their texts; null where nothing equals them."""
        types = {column.name: column.type for column in self.params.types}
        texts = [
            f"CAST(TRY_CAST({identifier(f'$on{i}')} AS {types[name]}) AS VARCHAR)"
            for i, name in enumerate(self.params.on)
        ]
        known = " AND ".join(f"{text} IS NOT NULL" for text in texts)
        key = f"CASE WHEN {known} THEN CAST(to_json([{', '.join(texts)}]) AS VARCHAR) END"
        found = query(f"SELECT {key} AS key FROM rows", rows)
        return found["key"].combine_chunks().cast(pa.string())

    def _asked(self, keys: Sequence[str], batch: TransformBatch) -> pa.Table:
        """Return answers as a table of schema KEPT: JSON of the list of rows that have a key."""
        place = (self.transform.name, self._name)
        known = _known.setdefault(place, {}) if self.params.refresh else {}
        now = monotonic()
        fresh = {
            key: answer
            for key in keys
            if key in known and now - known[key][0] < self.params.refresh / 1000
            for answer in (known[key][1],)
        }
        left = [key for key in keys if key not in fresh]
        table = PostgresRows(
            self.params.table,
            self.params.types,
            batch.connection("postgres", self.params.table.connection),
            self.transform.name,
        )
        for start in range(0, len(left), _AT_ONCE):
            some = left[start : start + _AT_ONCE]
            found: dict[str, list[str]] = {key: [] for key in some}
            by_values = {tuple(json.loads(key)): key for key in some}
            for values, row in table.with_values(self.params.on, list(by_values)):
                found[by_values[values]].append(row)
            fresh |= {key: f"[{','.join(sorted(rows))}]" for key, rows in found.items()}
        if self.params.refresh:
            if len(known) + len(left) > _MOST:
                known.clear()
            known.update({key: (now, fresh[key]) for key in left})
        columns = {
            "key": pa.array(keys, pa.string()),
            "by": pa.repeat(self.transform.id, len(keys)),
            "answer": pa.array([fresh[key] for key in keys], pa.string()),
        }
        nothing = pa.nulls(len(keys), pa.string())
        return pa.table([columns.get(name, nothing) for name in KEPT.names], schema=KEPT)

    def _joined(self, rows: pa.Table, keys: pa.Array, kept: pa.Table) -> Transformed:
        texts = pa.table({"n": np.arange(kept.num_rows), "answer": kept["answer"]})
        parts = query("SELECT n, unnest(CAST(answer AS JSON[])) AS row FROM rows ORDER BY n", texts)
        values = parts["row"].combine_chunks().cast(pa.binary())
        decoded = format_of("json").decode(values, self.params.types, no_schema)
        of = kept["key"].combine_chunks().take(parts["n"].combine_chunks())
        found = decoded.table.append_column("$key", of.take(decoded.good))
        found = found.append_column("$place", pa.array(np.arange(found.num_rows)))
        failing = {of[each.row].as_py(): each for each in decoded.bad}
        failures = [
            Failure(
                row=row,
                error=failing[key].error,
                message=f"a row of '{self.transform.name}': {failing[key].message}",
            )
            for row, key in enumerate(keys.to_pylist() if failing else ())
            if key in failing
        ]
        numbered = rows.append_column("$row", pa.array(np.arange(rows.num_rows)))
        numbered = numbered.append_column("$key", keys)
        if failures:
            bad = pa.array([failure.row for failure in failures], pa.int64())
            numbered = numbered.filter(pc.invert(pc.is_in(numbered["$row"], bad)))
        with cursor() as connection:  # DuckDB finds the tables by the names of variables
            made = connection.execute(self._sql()).to_arrow_table()
        return Transformed(
            rows=made.drop_columns(["$row"]),
            origin=made["$row"].combine_chunks(),
            failures=tuple(failures),
        )

    def _sql(self) -> str:
        """Return SQL of the rows with what was found, as DuckDB compares the values."""
        found = dict(self.params.columns)
        chosen = ", ".join(
            f"f.{identifier(found[c.name])} AS {identifier(c.name)}"
            if c.name in found
            else f"r.{identifier(c.name)}"
            for c in self.transform.results
        )
        given = {column.name: column.type for column in self.transform.columns}
        types = {column.name: column.type for column in self.params.types}
        pairs = [(f"$on{i}", name) for i, name in enumerate(self.params.on)]
        equal = " AND ".join(
            f"TRY_CAST(r.{identifier(on)} AS {types[name]}) = f.{identifier(name)}"
            if "VARCHAR" in (given[on], types[name])  # SQL would cast, and fail on other texts
            else f"r.{identifier(on)} = f.{identifier(name)}"
            for on, name in pairs
        )
        kind = "LEFT" if self.params.left else "INNER"
        return (
            f'SELECT r."$row", {chosen} FROM numbered r {kind} JOIN found f '
            f'ON r."$key" = f."$key" AND {equal} ORDER BY r."$row", f."$place"'
        )

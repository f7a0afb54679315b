"""A lookup join with a table of a database, whose answers are kept before anything else happens."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.connectors.attached.table import AttachedTable
from kaflow_engine.duck.queries import cursor, query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.transforms import LookupParams, Transform
from kaflow_engine.formats.contract import format_of, no_schema
from kaflow_engine.operators.transform.contract import Failure, TransformBatch, Transformed
from kaflow_engine.state.kept import KEPT
from kaflow_engine.transforms.row_answers import own_first, row_keys

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
        values = self._values(rows)
        keys = row_keys(batch.identities(), values)
        kept = own_first(batch.answers.kept_rows(self._name), self.transform.id)
        asks = pc.and_(values.is_valid(), pc.invert(pc.is_in(keys, kept["key"].combine_chunks())))
        missing = pa.table({"key": keys, "values": values}).filter(asks)
        if missing.num_rows:
            asked = self._asked(missing, batch)
            batch.answers.keep_rows(self._name, asked)
            kept = pa.concat_tables([kept, asked])
        found = pc.index_in(keys, kept["key"].combine_chunks())
        return self._joined(rows, kept["answer"].combine_chunks().take(found))

    @property
    def _name(self) -> str:
        """What answers are kept under: those by other columns, or of others, are others."""
        said = [self.params.on, repr(self.params.table), repr(self.params.types)]
        said += ["once"] if self.params.once else []
        by = sha256(json.dumps(said).encode())
        return f"{self.transform.name}-{by.hexdigest()[:8]}"

    def _values(self, rows: pa.Table) -> pa.Array:
        """Return what each row looks up, as JSON of the texts; null where nothing equals it."""
        types = {column.name: column.type for column in self.params.types}
        texts = [
            f"CAST(TRY_CAST({identifier(f'$on{i}')} AS {types[name]}) AS VARCHAR)"
            for i, name in enumerate(self.params.on)
        ]
        known = " AND ".join(f"{text} IS NOT NULL" for text in texts)
        key = f"CASE WHEN {known} THEN CAST(to_json([{', '.join(texts)}]) AS VARCHAR) END"
        found = query(f"SELECT {key} AS values FROM rows", rows)
        return found["values"].combine_chunks().cast(pa.string())

    def _asked(self, missing: pa.Table, batch: TransformBatch) -> pa.Table:
        """Return answers about rows as a table of schema KEPT: JSON of the list of rows found.

        Args:
            missing: The `key` of each row, and the `values` that it looks up.
        """
        values = missing["values"].combine_chunks().dictionary_encode()
        answers = self._answers(values.dictionary.to_pylist(), batch)
        columns = {
            "key": missing["key"],
            "by": pa.repeat(self.transform.id, missing.num_rows),
            "answer": pa.array(answers, pa.string()).take(values.indices),
        }
        nothing = pa.nulls(missing.num_rows, pa.string())
        return pa.table([columns.get(name, nothing) for name in KEPT.names], schema=KEPT)

    def _answers(self, values: Sequence[str], batch: TransformBatch) -> list[str]:
        """Return what the table has for each of some values: remembered, or asked for in one
        query."""
        place = (self.transform.name, self._name)
        known = _known.setdefault(place, {}) if self.params.refresh else {}
        now = monotonic()
        fresh = {
            each: known[each][1]
            for each in values
            if each in known and now - known[each][0] < self.params.refresh / 1000
        }
        left = [each for each in values if each not in fresh]
        reached = self.params.table.reached_by
        connection = batch.connection(*reached) if reached is not None else dict[str, str]()
        table = AttachedTable(self.params.table, connection, self.transform.name)
        keys: list[list[str]] = json.loads(f"[{','.join(left)}]")
        found: dict[str, list[str]] = {each: [] for each in left}
        rows = table.with_values(self.params.types, self.params.on, keys, once=self.params.once)
        for place, row in rows:
            found[left[place]].append(row)
        fresh |= {each: f"[{','.join(sorted(rows))}]" for each, rows in found.items()}
        if self.params.refresh:
            if len(known) + len(left) > _MOST:
                known.clear()
            known.update({each: (now, fresh[each]) for each in left})
        return [fresh[each] for each in values]

    def _joined(self, rows: pa.Table, answers: pa.Array) -> Transformed:
        """Return rows with what was found for them.

        Args:
            rows: As they came.
            answers: Of each row; null of one that looks nothing up.
        """
        each = answers.dictionary_encode()
        texts = pa.table({"number": np.arange(len(each.dictionary)), "answer": each.dictionary})
        parts = query(
            "SELECT number, unnest(CAST(answer AS JSON[])) AS row FROM rows ORDER BY number", texts
        )
        values = parts["row"].combine_chunks().cast(pa.binary())
        decoded = format_of("json").decode(values, self.params.types, no_schema)
        of = parts["number"].combine_chunks()
        found = decoded.table.append_column("$answer", of.take(decoded.good))
        found = found.append_column("$place", pa.array(np.arange(found.num_rows)))
        failing = {of[bad.row].as_py(): bad for bad in decoded.bad}
        failures = [
            Failure(
                row=row,
                error=failing[number].error,
                message=f"a row of '{self.transform.name}': {failing[number].message}",
            )
            for row, number in enumerate(each.indices.to_pylist() if failing else ())
            if number in failing
        ]
        numbered = rows.append_column("$row", pa.array(np.arange(rows.num_rows)))
        numbered = numbered.append_column("$answer", each.indices)
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
        wanted = dict(self.params.columns)
        chosen = ", ".join(
            f"found.{identifier(wanted[c.name])} AS {identifier(c.name)}"
            if c.name in wanted
            else f"numbered.{identifier(c.name)}"
            for c in self.transform.results
        )
        given = {column.name: column.type for column in self.transform.columns}
        types = {column.name: column.type for column in self.params.types}
        pairs = [(f"$on{i}", name) for i, name in enumerate(self.params.on)]
        equal = " AND ".join(
            f"TRY_CAST(numbered.{identifier(on)} AS {types[name]}) = found.{identifier(name)}"
            if "VARCHAR" in (given[on], types[name])  # SQL would cast, and fail on other texts
            else f"numbered.{identifier(on)} = found.{identifier(name)}"
            for on, name in pairs
        )
        kind = "LEFT" if self.params.left else "INNER"
        select = 'SELECT DISTINCT ON (numbered."$row")' if self.params.once else "SELECT"
        return (
            f'{select} numbered."$row", {chosen} FROM numbered {kind} JOIN found ON '
            f'numbered."$answer" = found."$answer" AND {equal} '
            'ORDER BY numbered."$row", found."$place"'
        )

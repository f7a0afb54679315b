"""Rows that go through a script."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.duck.wide.integers import is_wide
from kaflow_engine.duck.wide.taught import cast
from kaflow_engine.flow.transforms import ScriptParams, Transform
from kaflow_engine.formats.decoded import shown
from kaflow_engine.model.columns import Column
from kaflow_engine.model.durations import format_duration
from kaflow_engine.operators.row_errors.quarantine import DATA_ERRORS, guarded
from kaflow_engine.operators.rows.row_text import from_text, pack, to_text, unpack
from kaflow_engine.operators.transform.contract import (
    Failure,
    TransformBatch,
    Transformed,
)
from kaflow_engine.transforms.script.engine import (
    Ended,
    Outcome,
    ScriptEngine,
    limits_of,
    place_of,
)
from kaflow_engine.transforms.script.values import codec_of

CHUNK = 1_000
"""Rows that the engine takes at once."""
_ERROR = "ScriptError"


class Script:
    """A script as one task uses it."""

    def __init__(self, transform: Transform) -> None:
        assert isinstance(transform.params, ScriptParams)
        self._transform, self._params = transform, transform.params
        self._engine = self._fresh()

    def __call__(self, rows: pa.Table, batch: TransformBatch) -> Transformed:
        """Run the script over rows."""
        columns = self._transform.columns
        texts = pack(to_text(identifier(c.name), c.type) for c in columns)
        given: list[str] = query(f"SELECT {texts} AS row FROM rows", rows=rows)["row"].to_pylist()
        found: list[Outcome] = []
        for start in range(0, len(given), CHUNK):
            found += self._chunk(given[start : start + CHUNK])
        return self._typed(found)

    def _fresh(self) -> ScriptEngine:
        params = self._params
        inputs = [codec_of(column.name, column.type) for column in self._transform.columns]
        outputs = [codec_of(column.name, column.type) for column in self._transform.results]
        return ScriptEngine(params.text, inputs, outputs, limits_of(params))

    def _chunk(self, rows: Sequence[str]) -> list[Outcome]:
        """Run some rows; the engine goes on behind one that uses up its time or memory."""
        text = f"[{','.join(rows)}]"
        found: list[Outcome] = []
        while len(found) < len(rows):
            try:
                found += self._engine.run(text, len(found))
            except Ended as ended:
                self._engine = self._fresh()
                row = rows[len(found)]
                found.append(self._too_slow() if ended.by_time else self._alone(row))
        return found

    def _alone(self, row: str) -> Outcome:
        """Run a row for which there was no memory left beside others."""
        try:
            return self._engine.run(f"[{row}]", 0)[0]
        except Ended as ended:
            self._engine = self._fresh()
            if ended.by_time:
                return self._too_slow()
            size = self._params.memory // 1_000_000
            return {"ended": f"the script used more than {size} MB of memory"}

    def _too_slow(self) -> Outcome:
        wait = format_duration(self._params.timeout)
        return {"ended": f"the script took more than {wait} for the row"}

    def _typed(self, found: Sequence[Outcome]) -> Transformed:
        failures = [self._failure(row, e) for row, e in enumerate(found) if isinstance(e, Mapping)]
        made = [(row, one) for row, e in enumerate(found) if isinstance(e, list) for one in e]
        numbers = pa.array(np.arange(len(made)))
        packed = pa.array([text for _, text in made], pa.string())
        rows = pa.table({"rn": numbers, "row": packed})
        origin = pa.array(np.array([row for row, _ in made], np.int64))
        try:
            values = query(self._unpacked(self._transform.results), rows=rows)
        except DATA_ERRORS:
            unfit = self._unfit(rows, origin)
            failures = sorted([*failures, *unfit], key=lambda failure: failure.row)
            bad = pa.array([failure.row for failure in unfit], pa.int64())
            kept = pc.invert(pc.is_in(origin, bad))
            origin = origin.filter(kept)
            values = query(self._unpacked(self._transform.results), rows=rows.filter(kept))
        return Transformed(
            rows=values.drop_columns(["rn"]), origin=origin, failures=tuple(failures)
        )

    def _unpacked(self, columns: Sequence[Column]) -> str:
        typed = ", ".join(["rn", *self._values(columns)])
        return f"SELECT {typed} FROM (SELECT rn, {unpack('row')} AS l FROM rows)"

    def _values(self, columns: Sequence[Column]) -> list[str]:
        places = {column.name: i for i, column in enumerate(self._transform.results, 1)}
        return [f"{_value(places[c.name], c.type)} AS {identifier(c.name)}" for c in columns]

    def _unfit(self, rows: pa.Table, origin: pa.Array) -> list[Failure]:
        """Return why rows do not fit their columns, once for each row that they are made of."""
        found: dict[int, Failure] = {}
        for place, column in enumerate(self._transform.results):
            for bad in guarded(self._unpacked([column]), rows)[1]:
                row: int = origin[bad.row].as_py()
                value = json.loads(rows["row"][bad.row].as_py())[place]
                message = f"column '{column.name}': {shown(value)} is no {column.type}"
                found.setdefault(row, Failure(row=row, error=_ERROR, message=message))
        return list(found.values())

    def _failure(self, row: int, why: Mapping[str, str]) -> Failure:
        if "ended" in why:
            return Failure(row=row, error="ScriptLimit", message=why["ended"])
        if "unfit" in why:
            return Failure(row=row, error=_ERROR, message=why["unfit"])
        text = self._params.text
        message, line = place_of(f"{why['message']}\n{why['stack']}", text)
        if line is not None:
            message = f"{message} (line {line} of the script)"
        return Failure(row=row, error=_ERROR, message=message)


def _value(place: int, kind: str) -> str:
    """Return SQL of what a script gives; wide integers have bounds."""
    text = f"l[{place}]"
    return cast(text, kind) if is_wide(kind) else from_text(text, kind)

"""Scripts as a kind of transform."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.transforms import ScriptParams, Transform
from kaflow_engine.operators.rows.row_text import columns_of, pack, to_text, unpack
from kaflow_engine.operators.transform.contract import (
    Failure,
    Mistake,
    RowTransform,
    TransformBatch,
    Transformed,
)
from kaflow_engine.transforms.script.engine import (
    Ended,
    Limits,
    Outcome,
    ScriptEngine,
    ScriptMistake,
    place_of,
)
from kaflow_engine.transforms.script.values import codec_of

CHUNK = 1_000
"""Rows that the engine takes at once."""


class ScriptKind:
    """Scripts, as a `TransformKind`."""

    def mistakes(self, params: ScriptParams) -> Iterator[Mistake]:
        """Yield why a script is none."""
        try:
            ScriptEngine(params.text, (), (), _limits(params))
        except ScriptMistake as mistake:
            yield Mistake(key="script", message=str(mistake), line=mistake.line)

    def open(self, transform: Transform) -> RowTransform:
        """Return what runs the script in an engine of its own."""
        return _Script(transform)


def _limits(params: ScriptParams) -> Limits:
    return Limits(seconds=params.timeout / 1000, memory=params.memory)


class _Script:
    def __init__(self, transform: Transform) -> None:
        self._transform = transform
        self._engine = self._fresh()

    def __call__(self, rows: pa.Table, batch: TransformBatch) -> Transformed:
        columns = self._transform.columns
        texts = pack(to_text(identifier(c.name), c.type) for c in columns)
        given: list[str] = query(f"SELECT {texts} AS row FROM rows", rows=rows)["row"].to_pylist()
        found: list[Outcome] = []
        for start in range(0, len(given), CHUNK):
            found += self._chunk(given[start : start + CHUNK])
        return self._typed(found)

    def _fresh(self) -> ScriptEngine:
        params = self._transform.params
        inputs = [codec_of(column.name, column.type) for column in self._transform.columns]
        outputs = [codec_of(column.name, column.type) for column in self._transform.results]
        return ScriptEngine(params.text, inputs, outputs, _limits(params))

    def _chunk(self, rows: Sequence[str]) -> list[Outcome]:
        """Run some rows; one that uses up time or memory is tried alone before it fails."""
        text = f"[{','.join(rows)}]"
        found: list[Outcome] = []
        while len(found) < len(rows):
            try:
                found += self._engine.run(text, len(found))
            except Ended:
                self._engine = self._fresh()
                found.append(self._alone(rows[len(found)]))
        return found

    def _alone(self, row: str) -> Outcome:
        try:
            return self._engine.run(f"[{row}]", 0)[0]
        except Ended as ended:
            self._engine = self._fresh()
            return {"ended": str(ended)}

    def _typed(self, found: Sequence[Outcome]) -> Transformed:
        results = self._transform.results
        failures = [
            Failure(row=row, error=error, message=message)
            for row, each in enumerate(found)
            if not isinstance(each, list)
            for error, message in (self._why(each),)
        ]
        made = [
            (row, text) for row, each in enumerate(found) if isinstance(each, list) for text in each
        ]
        rows = pa.table({"row": pa.array([text for _, text in made], pa.string())})
        typed = ", ".join(columns_of("l", results))
        values = query(f"SELECT {typed} FROM (SELECT {unpack('row')} AS l FROM rows)", rows=rows)
        origin = pa.array(np.array([row for row, _ in made], np.int64))
        return Transformed(rows=values, origin=origin, failures=tuple(failures))

    def _why(self, each: Outcome) -> tuple[str, str]:
        assert isinstance(each, dict)
        if "unfit" in each:
            return "ScriptError", each["unfit"]
        if "ended" in each:
            return "ScriptLimit", each["ended"]
        message, line = place_of(f"{each['message']}\n{each['stack']}", self._transform.params.text)
        return "ScriptError", f"{message} (line {line} of the script)"

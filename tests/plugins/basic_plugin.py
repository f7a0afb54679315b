"""Plugins that examples of Streamling name, as classes with its hooks."""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, Field

from kaflow_engine.api.hooks import SinkHooks, SourceHooks, TransformHooks
from kaflow_engine.api.side_outputs import GivenSideOutput, SeenRows


class RandomOptions(BaseModel):
    """How many rows there are, and how many of them come at once."""

    max_rows: int = Field(gt=0)
    record_batch_size: int = Field(default=1000, gt=0)


class RandomSource(SourceHooks):
    """Rows that look made up; the last two of a batch are an update and a delete."""

    options = RandomOptions
    ends = True

    def columns(self, options: RandomOptions) -> Mapping[str, str]:
        return {"num_field": "INTEGER", "alphanumeric_field": "VARCHAR", "_gs_op": "VARCHAR"}

    def initialize(self) -> None:
        self.count = self.position or 0

    @property
    def said(self) -> RandomOptions:
        assert isinstance(self.given.options, RandomOptions)
        return self.given.options

    def is_running(self) -> bool:
        return self.count < self.said.max_rows

    def generate_batch(self) -> pa.RecordBatch:
        end = min(self.count + self.said.record_batch_size, self.said.max_rows)
        rows = [row_of(number) for number in range(self.count, end)]
        for row, operation in zip(rows[-2:], "ud", strict=False):
            row["_gs_op"] = operation
        self.count = end
        return pa.RecordBatch.from_pylist(rows)

    def process_checkpoint_marker(self, epoch: int) -> int:
        return self.count


def row_of(number: int) -> dict[str, int | str]:
    """Return a row as it is inserted."""
    digest = hashlib.sha256(str(number).encode()).hexdigest()
    letters = "".join(chr(97 + int(digit, 16)) for digit in digest[:8])
    return {
        "num_field": int(digest[8:12], 16) % 1000,
        "alphanumeric_field": letters,
        "_gs_op": "i",
    }


class FilterTransform(TransformHooks):
    """Keeps rows whose columns equal the options."""

    async def process_batch(self, data: pa.RecordBatch) -> pa.RecordBatch:
        for name, value in self.given.options.model_dump().items():
            if name in data.schema.names:
                data = data.filter(pc.equal(data[name], value))
        return data


class PrintOptions(BaseModel):
    """How rows are printed."""

    mode: Literal["batch", "row"] = "row"


class PrintSink(SinkHooks):
    """Prints rows: those of a batch as a table, or each as JSON."""

    options = PrintOptions

    def process_batch(self, data: pa.RecordBatch) -> None:
        said = self.given.options
        assert isinstance(said, PrintOptions)
        if said.mode == "row":
            lines = [json.dumps(row, default=str) for row in data.to_pylist()]
        else:
            cells = [[str(row[name]) for name in data.schema.names] for row in data.to_pylist()]
            lines = [" | ".join(row) for row in ([*data.schema.names], *cells)]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()


class CountOptions(BaseModel):
    """Where it says what it saw."""

    folder: str


class Count:
    """Counts what rows of a source do, in a file of each batch and task."""

    contract = 1
    options = CountOptions

    def open(self, given: GivenSideOutput) -> Callable[[SeenRows], None]:
        said = given.options
        assert isinstance(said, CountOptions)

        def count(seen: SeenRows) -> None:
            rows = seen.rows.select(["_gs_op", "$deleted"]).to_pylist()
            found = Counter("d" if row["$deleted"] else row["_gs_op"] for row in rows)
            name = f"{given.output.partition(':')[2]}-{uuid4()}.json"
            Path(said.folder, name).write_text(json.dumps(found))

        return count

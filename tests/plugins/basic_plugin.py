"""Plugins that examples of Streamling name, on the contracts of this project."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field

from kaflow_engine.api.sources import Given, TimedRow
from kaflow_engine.api.transforms import GivenTransform, NewRows
from kaflow_engine.connectors.console.sink import Console


class RandomOptions(BaseModel):
    """How many rows there are, and how many of them come at once."""

    max_rows: int = Field(gt=0)
    record_batch_size: int = Field(default=1000, gt=0)


class RandomSource:
    """Rows that look made up; the same ones each time."""

    options = RandomOptions
    replays = True

    def bounded(self, options: RandomOptions) -> bool:
        return True

    def columns(self, options: RandomOptions) -> Mapping[str, str]:
        return {"num_field": "INTEGER", "alphanumeric_field": "VARCHAR"}

    def open(self, given: Given) -> "RandomRows":
        options = given.options
        assert isinstance(options, RandomOptions)
        return RandomRows(options.max_rows)


@dataclass(frozen=True)
class RandomRows:
    """Row n is a function of n."""

    count: int

    def ends(self) -> Mapping[int, int]:
        return {0: self.count}

    def starts(self, since: int | None) -> Mapping[int, int]:
        return {0: 0}

    def rows(self, partition: int, start: int, end: int) -> Iterator[TimedRow]:
        for number in range(start, end):
            yield TimedRow(row=row_of(number), timestamp=1_767_225_600_000 + number)


def row_of(number: int) -> Mapping[str, int | str]:
    """Return a row."""
    digest = hashlib.sha256(str(number).encode()).hexdigest()
    return {"num_field": int(digest[:4], 16) % 1000, "alphanumeric_field": f"r{digest[:7]}"}


class FilterOptions(BaseModel):
    """Columns of text, and the value that each must have."""

    model_config = ConfigDict(extra="allow")


class FilterTransform:
    """Keeps rows whose columns equal the options."""

    contract = 1
    options = FilterOptions

    def columns(self, options: FilterOptions) -> Mapping[str, str | None]:
        return {}

    def open(self, given: GivenTransform) -> "Filter":
        return Filter(dict(given.options))


@dataclass(frozen=True)
class Filter:
    """Keeps rows."""

    wanted: Mapping[str, object]

    def __call__(self, rows: pa.Table) -> NewRows:
        wanted = {n: str(v) for n, v in self.wanted.items() if n in rows.column_names}
        places = [
            place
            for place, row in enumerate(rows.select(list(wanted)).to_pylist())
            if row == wanted
        ]
        return NewRows(rows=rows.take(pa.array(places, pa.int64())), of=places)


class PrintOptions(BaseModel):
    """How rows are printed."""

    mode: Literal["batch", "row"] = "row"


class PrintSink(Console):
    """Prints rows."""

    options = PrintOptions

"""The readers of a data source: what lies between two offsets, as values of records."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import pyarrow as pa
from pyspark.errors import PySparkNotImplementedError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.types import StructType
from pyspark.sql.worker import plan_data_source_read

from kaflow_engine.connectors.pyspark.classes import data_source
from kaflow_engine.connectors.pyspark.spool import MOST_ROWS
from kaflow_engine.connectors.pyspark.types import columns_of, schema_of, spark_schema
from kaflow_engine.connectors.sources.records import json_values
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.plugins import PySparkParams
from kaflow_engine.model.columns import Column

Offset = Any
"""Data for JSON, which the data source orders."""
Values = Iterator[pa.Array]
"""Rows as JSON objects, some at a time."""


@dataclass(frozen=True, slots=True)
class Range:
    """What lies behind an offset."""

    values: Values
    end: Offset


class Reading:
    """A data source with its options and its schema.

    Args:
        params: Its settings.
        settings: What the configuration says of it.

    Raises:
        SourceUnfit: There is no such class, or it refuses its options.
    """

    def __init__(self, params: PySparkParams, settings: Mapping[str, str]) -> None:
        self.params = params
        self.called = f"data source '{params.format}'"
        self.source: DataSource = data_source(params.format, dict(params.options), settings)

    @cached_property
    def schema(self) -> StructType:
        """What it is asked for: the columns that are declared, else what it has.

        Raises:
            SourceUnfit: It has no schema that fits.
        """
        if self.params.columns:
            return spark_schema(self.params.columns)
        try:
            return schema_of(self.source.schema(), self.called)
        except PySparkNotImplementedError as error:
            raise SourceUnfit(
                f"{self.called} says no schema of its own",
                hint="declare `columns` of the source: they are what it is asked for",
            ) from error

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Its columns with DuckDB's types."""
        return columns_of(self.schema, self.called)

    def batch(self) -> Values:
        """Yield all rows.

        Raises:
            SourceUnfit: It has no reader of batches.
        """
        reader = self._made("reader", "read: stream")
        for partition in reader.partitions() or [InputPartition(None)]:
            yield from self.values(reader.read(partition))

    def stream(self) -> "Stream":
        """Return a reader of what comes.

        Raises:
            SourceUnfit: It has no reader of streams.
        """
        try:
            return Stream(self, self.source.streamReader(self.schema), simple=False)
        except PySparkNotImplementedError:
            return Stream(self, self._made("simpleStreamReader", "read: batch"), simple=True)

    def values(self, rows: Any) -> Values:
        """Yield rows, as tuples or Arrow, as JSON.

        Raises:
            SourceUnfit: They are not as the schema says.
        """
        pairs = [(column, identifier(column.name)) for column in self.columns]
        to_arrow: Any = cast(Any, plan_data_source_read).records_to_arrow_batches
        try:
            for batch in to_arrow(iter(rows), MOST_ROWS, self.schema, self.source):
                yield json_values(pa.Table.from_batches([batch]), pairs)
        except PySparkException as error:
            raise SourceUnfit(
                f"{self.called} gives rows that are not as its schema: {error}",
                hint="correct `columns` of the source, or the data source",
            ) from error

    def _made(self, how: str, instead: str) -> Any:
        try:
            return getattr(self.source, how)(self.schema)
        except PySparkNotImplementedError as error:
            what = "batches" if how == "reader" else "streams"
            raise SourceUnfit(
                f"{self.called} has no reader of {what}", hint=f"write {instead}"
            ) from error


class Stream:
    """A reader of what comes behind an offset.

    Args:
        reading: Whose it is.
        reader: PySpark's, of either class.
        simple: Whether it says with its rows how far they reach.
    """

    def __init__(self, reading: Reading, reader: Any, *, simple: bool) -> None:
        self._reading, self._reader, self._simple = reading, reader, simple

    def initial(self) -> Offset:
        """Return where it begins."""
        return self._reader.initialOffset()

    def behind(self, start: Offset) -> Range | None:
        """Return what lies behind an offset; None: nothing."""
        if self._simple:
            rows, end = cast(tuple[Any, Offset], self._reader.read(start))
            values = self._reading.values(rows)
            if end != start:
                return Range(values, end)
            if next(values, None) is not None:
                raise SourceUnfit(
                    f"{self._reading.called} gives rows without another offset than {start}",
                    hint="correct the data source: its `read` returns the offset behind its rows",
                )
            return None
        end = self._latest(start)
        return None if end == start else Range(self._between(start, end), end)

    def commit(self, end: Offset) -> None:
        """Tell it that what lies before an offset is never asked for again."""
        self._reader.commit(end)

    def stop(self) -> None:
        """Let go of what it holds."""
        if not self._simple:
            self._reader.stop()

    def _latest(self, start: Offset) -> Offset:
        """Ask for the end, in the way of PySpark 4.2 or of those before."""
        if not inspect.signature(self._reader.latestOffset).parameters:
            return self._reader.latestOffset()
        return self._reader.latestOffset(start, self._reader.getDefaultReadLimit())

    def _between(self, start: Offset, end: Offset) -> Values:
        for partition in self._reader.partitions(start, end):
            yield from self._reading.values(self._reader.read(partition))

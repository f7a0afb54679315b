"""Data sources as others write them for PySpark, each in one of the ways that there are."""
# pyright: basic

import datetime
import decimal

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.types import IntegerType, StructField, StructType, VariantType

MOST = 7


class Between(InputPartition):
    def __init__(self, first, end):
        self.first, self.end = first, end


class NumbersReader(DataSourceStreamReader):
    """Two partitions for each range; a limit is not looked at."""

    def initialOffset(self):
        return {"n": 0}

    def latestOffset(self, start, limit):
        return {"n": min(MOST, start["n"] + 3)}

    def partitions(self, start, end):
        middle = (start["n"] + end["n"]) // 2
        return [Between(start["n"], middle), Between(middle, end["n"])]

    def read(self, partition):
        for n in range(partition.first, partition.end):
            yield (n, f"n{n}")


class Numbers(DataSource):
    @classmethod
    def name(cls):
        return "numbers"

    def schema(self):
        return "n BIGINT, called STRING"

    def streamReader(self, schema):
        return NumbersReader()


class OldReader(NumbersReader):
    """As before PySpark 4.2: no one says from where."""

    def __init__(self):
        self.at = 0

    def latestOffset(self):
        self.at = min(MOST, self.at + 3)
        return {"n": self.at}


class OldNumbers(Numbers):
    @classmethod
    def name(cls):
        return "old_numbers"

    def streamReader(self, schema):
        return OldReader()


class SimpleReader(SimpleDataSourceStreamReader):
    def initialOffset(self):
        return {"n": 0}

    def read(self, start):
        end = min(MOST, start["n"] + 2)
        rows = [Row(called=f"n{n}", n=n) for n in range(start["n"], end)]
        return iter(rows), {"n": end}


class SimpleNumbers(Numbers):
    @classmethod
    def name(cls):
        return "simple_numbers"

    def simpleStreamReader(self, schema):
        return SimpleReader()

    streamReader = DataSource.streamReader


class Stuck(SimpleReader):
    def read(self, start):
        return iter([(1, "a")]), start


class StuckNumbers(SimpleNumbers):
    @classmethod
    def name(cls):
        return "stuck"

    def simpleStreamReader(self, schema):
        return Stuck()


class TableReader(DataSourceReader):
    """Arrow, as whoever asks wants it: as many rows as the option says, of two partitions."""

    def __init__(self, schema, options):
        from pyspark.sql.pandas.types import to_arrow_schema

        self.schema, self.rows = to_arrow_schema(schema, timezone="UTC"), int(options["rows"])
        self.step = int(options.get("step", 4_000))

    def partitions(self):
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition):
        half = self.rows // 2
        first, end = (0, half) if partition.value == 0 else (half, self.rows)
        for at in range(first, end, self.step):
            numbers = list(range(at, min(at + self.step, end)))
            columns = [pa.array(numbers, pa.int64()), pa.array([f"n{n}" for n in numbers])]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


class Table(Numbers):
    @classmethod
    def name(cls):
        return "table"

    def reader(self, schema):
        return TableReader(schema, self.options)

    streamReader = DataSource.streamReader


class SparseReader(NumbersReader):
    """Its offsets go on where no row comes; it begins where it is by now."""

    now = 0
    committed = ()

    def initialOffset(self):
        return {"n": self.now}

    def latestOffset(self, start, limit):
        return {"n": min(MOST, start["n"] + 1)}

    def partitions(self, start, end):
        return [Between(start["n"], end["n"])]

    def read(self, partition):
        return (row for row in super().read(partition) if row[0] % 3 == 2)

    def commit(self, end):
        self.committed.append(end)


class Sparse(Numbers):
    @classmethod
    def name(cls):
        return "sparse"

    def streamReader(self, schema):
        return SparseReader()


class EveryTypeReader(DataSourceReader):
    def read(self, partition):
        at = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
        yield (
            True, 1, 2**62, 1.5, decimal.Decimal("1.10"), "a", b"\x00\xff", at.date(), at,
            at.replace(tzinfo=None), [1, None], {"k": 1}, (1, "b"),
        )  # fmt: skip
        yield (None,) * 13


class EveryType(DataSource):
    @classmethod
    def name(cls):
        return "every_type"

    def schema(self):
        return (
            "a BOOLEAN, b TINYINT, c BIGINT, d DOUBLE, e DECIMAL(9,2), f STRING, g BINARY, h DATE, "
            "i TIMESTAMP, j TIMESTAMP_NTZ, k ARRAY<INT>, l MAP<STRING, INT>, "
            "m STRUCT<x: INT, y: STRING>"
        )

    def reader(self, schema):
        return EveryTypeReader()


class Odd(Numbers):
    """Its schema has a type that has no form here."""

    @classmethod
    def name(cls):
        return "odd"

    def schema(self):
        return StructType([StructField("n", IntegerType()), StructField("v", VariantType())])


class Wordy(Numbers):
    @classmethod
    def name(cls):
        return "wordy"

    def schema(self):
        return "whatever it is"


class Unsaid(DataSource):
    @classmethod
    def name(cls):
        return "unsaid"

    def reader(self, schema):
        return EveryTypeReader()


class Picky(DataSource):
    def __init__(self, options):
        if "url" not in options:
            raise ValueError("option 'url' is missing")

    @classmethod
    def name(cls):
        return "picky"


class AwayReader(NumbersReader):
    def read(self, partition):
        raise OSError("the server is away")


class Away(Numbers):
    @classmethod
    def name(cls):
        return "away"

    def streamReader(self, schema):
        return AwayReader()


class WrongReader(NumbersReader):
    def read(self, partition):
        yield (1,)


class Wrong(Numbers):
    @classmethod
    def name(cls):
        return "wrong"

    def streamReader(self, schema):
        return WrongReader()

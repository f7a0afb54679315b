"""The columns of a history file that hold a record's parts."""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, DataType, StructType, TimestampNTZType, TimestampType

from kaflow_engine.errors import SourceError
from kaflow_engine.flow.sources import HistoryParams

_LINE = "value"
"""What Spark calls a line of text."""
_TO_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


@dataclass(frozen=True, slots=True)
class RowReader:
    """Knows where in a row of the files everything is."""

    source: HistoryParams
    schema: StructType

    def check(self, where: str) -> None:
        """Raise SourceError for a column that does not exist."""
        source = self.source
        named = {
            "partition": source.partition,
            "offset": source.offset,
            "timestamp": source.timestamp,
            "key": source.key,
            "value": source.value,
        }
        for what, name in named.items():
            if name is not None and not self._has(name):
                raise SourceError(
                    f"{where} has no column '{name}'",
                    hint=f"say history.{what}: <column>, the one with the {what} of each record; "
                    f"known: {', '.join(self.schema.names)}",
                )
        values = next((f for f in self.schema.fields if f.name == "value"), None)
        if source.value is None and values and isinstance(values.dataType, BinaryType):
            raise SourceError(
                f"{where} has a column 'value' of bytes",
                hint="say history.value: value, if it is what the topic had as values",
            )

    def record(self, topic: str) -> list[Column]:
        """Return the columns of RECORDS."""
        return [
            sf.lit(topic).alias("topic"),
            self.partition.alias("partition"),
            self.offset.alias("offset"),
            self.timestamp.alias("timestamp"),
            self._key().alias("key"),
            self._value().alias("value"),
            sf.expr("CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>)").alias("headers"),
        ]

    @property
    def partition(self) -> Column:
        """The partition of a row; NULL where it has none."""
        return self._at(self.source.partition).try_cast("INT")

    @property
    def offset(self) -> Column:
        """The offset of a row; NULL where it has none."""
        return self._at(self.source.offset).try_cast("BIGINT")

    @property
    def timestamp(self) -> Column:
        """The Kafka timestamp of a row in epoch milliseconds; NULL where it has none."""
        name = self.source.timestamp
        found = self._at(name)
        if isinstance(self._type(name), TimestampType | TimestampNTZType):
            return sf.unix_millis(found.cast("TIMESTAMP"))
        instant = sf.unix_millis(found.cast("STRING").try_cast("TIMESTAMP"))
        return sf.coalesce(found.try_cast("BIGINT"), instant)

    def _key(self) -> Column:
        name = self.source.key or "key"
        if not self._has(name):
            return sf.lit(None).cast("BINARY")
        return self._bytes(name)

    def _value(self) -> Column:
        if self.source.value is not None:
            return self._bytes(self.source.value)
        if self._is_text:
            return sf.col(_LINE).cast("BINARY")
        every = sf.struct(*[sf.col(f"`{name}`") for name in self.schema.names])
        return sf.to_json(every, _TO_JSON).cast("BINARY")

    def _bytes(self, name: str) -> Column:
        found = self._at(name)
        is_bytes = isinstance(self._type(name), BinaryType)
        return found if is_bytes else found.cast("STRING").cast("BINARY")

    def _at(self, name: str) -> Column:
        if self._is_text and self._type(name) is None:
            return sf.get_json_object(sf.col(_LINE), f"$['{name}']")
        return sf.col(f"`{name}`")

    def _has(self, name: str) -> bool:
        return self._is_text or self._type(name) is not None

    def _type(self, name: str) -> DataType | None:
        """The type of a column of the files; of JSON, only folders are columns."""
        own = (f for f in self.schema.fields if not (self._is_text and f.name == _LINE))
        return next((field.dataType for field in own if field.name == name), None)

    @property
    def _is_text(self) -> bool:
        return self.source.format == "json"

"""Files of Avro, which have their schema in front: how many records, and each as JSON."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, BinaryIO, cast

import fastavro
import pyarrow as pa

from kaflow_engine.connectors.sources.avro_values import json_of_avro
from kaflow_engine.errors import ModelError
from kaflow_engine.formats.avro.schema import columns_of
from kaflow_engine.formats.framing import header
from kaflow_engine.model.columns import Column

_SCHEMA = "avro.schema"
_HEADER = header(0)


class NoAvro(Exception):
    """A file is no Avro, or breaks off, or has a schema for which there are no columns."""


def count(file: BinaryIO) -> int:
    """Return how many records there are.

    Raises:
        NoAvro: It cannot be read.
    """
    with _errors():
        return sum(block.num_records for block in _reader(file))


def columns(file: BinaryIO) -> tuple[Column, ...]:
    """Return the fields of the schema.

    Raises:
        NoAvro: It cannot be read.
    """
    with _errors():
        return columns_of(_schema(_reader(file)))


def values(file: BinaryIO, start: int, end: int, most: int) -> Iterator[pa.Array]:
    """Yield the records from `start` to `end` as JSON objects, as arrays of at most so many.

    Raises:
        NoAvro: The file cannot be read.
    """
    with _errors():
        reader = _reader(file)
        schema = _schema(reader)
        found = columns_of(schema)
        payloads = _payloads(reader, start, end)
        while some := list(islice(payloads, most)):
            framed = pa.array([_HEADER + payload for payload in some], pa.binary())
            yield pa.array(json_of_avro(framed, found, lambda _: schema), pa.binary())


def _payloads(reader: Any, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes of records; blocks in front of the first one are passed over whole."""
    schema, first = reader.writer_schema, 0
    for block in reader:
        last = first + block.num_records
        if first < end and start < last:
            data, at = block.bytes_.getvalue(), 0
            for number in range(first, min(last, end)):
                fastavro.schemaless_reader(block.bytes_, schema, None)
                behind = block.bytes_.tell()
                if number >= start:
                    yield data[at:behind]
                at = behind
        first = last


def _reader(file: BinaryIO) -> Any:
    return cast(Any, fastavro).block_reader(file)


def _schema(reader: Any) -> str:
    return reader.metadata[_SCHEMA]


@contextmanager
def _errors() -> Generator[None]:
    try:
        yield
    except (OSError, ModelError, NoAvro) as error:
        if isinstance(error, ModelError):
            raise NoAvro(error.message) from error
        raise
    except Exception as error:  # fastavro promises no set of errors for broken bytes
        raise NoAvro(f"{type(error).__name__}: {error}") from error

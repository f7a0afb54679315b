"""Given records → bytes as Kafka would hold them; emitted bytes → values to compare."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.flow.graph import output_columns, output_format, output_schema
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.formats.contract import Evidence, IdSchema, format_of, no_schema
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.specs import AvroSpec
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.testing.cases.specs import Given, Letter, Row
from kaflow_engine.testing.cases.values import Json, parse_json

OUTPUT_ID = 1
"""The id under which the Avro output of a case is registered; inputs follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """How the records of one pipeline look on the wire; Avro ids are made up."""

    planned: PlannedPipeline
    """With the id of its Avro output, if it has one."""
    schemas: Mapping[int, str]
    """Avro schemas by id."""
    ids: Mapping[str, int]
    """The schema id of each Avro input."""


def wire_of(planned: PlannedPipeline) -> Wire:
    """Give every topic whose format has schemas one, derived from its columns, and an id.

    Raises:
        ModelError: A column has a name or a type that the format does not have.
    """
    schemas: dict[int, str] = {}
    ids: dict[str, int] = {}
    schema = output_schema(planned.plan)
    if schema is not None:
        schemas[OUTPUT_ID] = schema
        planned = planned.with_avro_id(OUTPUT_ID)
    for topic in planned.plan.sources:
        columns = planned.schemas[topic.name]
        schema = format_of(topic.format).schema_of(columns, AvroSpec().name)
        if schema is not None:
            ids[topic.name] = OUTPUT_ID + 1 + topic.index
            schemas[ids[topic.name]] = schema
    return Wire(planned=planned, schemas=schemas, ids=ids)


def partitions_of(wire: Wire, given: Iterable[Given]) -> dict[str, range]:
    """Return the partitions of every input topic: all up to the greatest that is used."""
    last = {topic.name: 0 for topic in wire.planned.plan.sources}
    for record in given:
        last[record.topic] = max(last[record.topic], record.partition)
    return {topic: range(number + 1) for topic, number in last.items()}


def check_topics(wire: Wire, given: Iterable[Given]) -> None:
    """Refuse records of topics that the pipeline does not read.

    Raises:
        ModelError: With the nearest name.
    """
    known = [topic.name for topic in wire.planned.plan.sources]
    raise_all(UnknownName("topic", r.topic, known, r.at) for r in given if r.topic not in known)


def records_table(wire: Wire, given: Sequence[Given]) -> pa.Table:
    """Return records as a source gives them (schema RECORDS), each partition in offset order.

    Raises:
        ModelError: A value does not fit the columns of an Avro topic.
    """
    rows = [
        {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": record.key,
            "value": _encoded(wire, record),
            "headers": [{"key": name, "value": value} for name, value in record.headers],
        }
        for record in given
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)


def emitted_rows(wire: Wire, output: pa.Table, batch: int) -> list[tuple[Row, bytes]]:
    """Return the rows of a batch in order, each with its value as it was written."""
    found = [row for row in output.to_pylist() if row["kind"] == 0]
    raw: list[bytes] = [row["value"] for row in found]
    return [
        (Row(topic=row["topic"], key=_text(row["key"]), value=value, batch=batch), data)
        for row, value, data in zip(found, _values(wire, raw), raw, strict=True)
    ]


def written_letters(output: pa.Table) -> list[Letter]:
    """Return the dead letters of a batch."""
    return [_letter(row["headers"]) for row in output.to_pylist() if row["kind"] == 1]


def _encoded(wire: Wire, record: Given) -> bytes | None:
    value = record.value
    if not isinstance(value, str):
        return value
    topic = next(topic for topic in wire.planned.plan.sources if topic.name == record.topic)
    form = format_of(topic.format)
    if form.traits.is_json:
        return value.encode()
    columns = wire.planned.schemas[record.topic]
    known = wire.ids.get(record.topic)
    schema = None if known is None else IdSchema(known, wire.schemas[known])
    json = format_of("json")
    decoded = json.decode(pa.array([value.encode()], pa.binary()), columns, no_schema)
    encoded = form.encoder(columns, schema).encode(decoded.table)
    bad = [*decoded.bad, *encoded.bad]
    if bad:
        message = f"the value does not fit the columns of '{record.topic}': {bad[0].message}"
        raise ModelError(message, record.at, "correct it, or give the bytes as raw_base64")
    return encoded.values[0]


def _values(wire: Wire, raw: Sequence[bytes]) -> list[Json]:
    plan = wire.planned.plan
    form = format_of(output_format(plan))
    if form.traits.is_json:
        return [parse_json(value) for value in raw]
    columns, schema = output_columns(plan), output_schema(plan)
    if schema is not None:
        columns = form.columns(Evidence.of_schema(schema)) or columns
    decoded = form.decode(pa.array(raw, pa.binary()), columns, wire.schemas.__getitem__)
    assert not decoded.bad, decoded.bad
    shown = format_of("json").encoder(columns, None).encode(decoded.table)
    return [parse_json(value) for value in shown.array.to_pylist()]


def _letter(headers: Sequence[Mapping[str, Any]]) -> Letter:
    about = {header["key"]: header["value"] for header in headers}
    return Letter(
        topic=about["kaflow.topic"].decode(),
        partition=int(about["kaflow.partition"]),
        offset=int(about["kaflow.offset"]),
        phase=about["kaflow.phase"].decode(),
    )


def _text(key: bytes | None) -> str | None:
    return None if key is None else key.decode(errors="backslashreplace")

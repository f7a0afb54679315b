"""Given records → bytes as Kafka would hold them; emitted bytes → values to compare."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.flow.graph import columns_of, topic_sinks
from kaflow_engine.flow.records import DEAD_LETTER, RECORDS, ROW
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.formats.avro.keys import as_record, key_columns, key_schema
from kaflow_engine.formats.contract import Evidence, IdSchema, format_of, no_schema
from kaflow_engine.formats.keys import key_of_text, text_of_key
from kaflow_engine.model.columns import Column
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.outputs.output_specs import SchemaSpec
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.testing.cases.record_keys import as_object, shown_key
from kaflow_engine.testing.cases.specs import Case, Given, Letter, Row
from kaflow_engine.testing.cases.values import Json, parse_json

_FIRST_ID = 1
"""The id under which the schema of the first output of a case is registered; inputs come last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """How the records of one pipeline look on the wire; Avro ids are made up."""

    planned: PlannedPipeline
    """With the ids of its Avro outputs."""
    schemas: Mapping[int, str]
    """Avro schemas by id."""
    ids: Mapping[str, int]
    """The schema id of each Avro input."""
    key_ids: Mapping[str, int] = field(default_factory=dict[str, int])
    """The schema id of the keys of each input whose keys are Avro."""


def wire_of(planned: PlannedPipeline) -> Wire:
    """Give every topic whose format has schemas one, derived from its columns, and an id.

    Raises:
        ModelError: A column has a name or a type that the format does not have.
    """
    schemas: dict[int, str] = {}
    ids: dict[str, int] = {}
    written: dict[str, int] = {}
    for number, sink in enumerate(topic_sinks(planned.plan), _FIRST_ID):
        if sink.avro_schema is not None:
            written[sink.id], schemas[number] = number, sink.avro_schema
    first = _FIRST_ID + len(planned.plan.sinks)
    of_keys: dict[str, int] = {}
    for number, sink in enumerate(topic_sinks(planned.plan), first):
        if sink.key_schema is not None:
            of_keys[sink.id], schemas[number] = number, sink.key_schema
    planned = planned.with_avro_ids(written, of_keys)
    first += len(planned.plan.sinks)
    for topic in planned.plan.sources:
        columns = planned.schemas[topic.name]
        schema = format_of(topic.format).schema_of(columns, SchemaSpec().name)
        if schema is not None:
            ids[topic.name] = first + topic.index
            schemas[ids[topic.name]] = schema
    first += len(planned.plan.sources)
    key_ids = {t.name: first + t.index for t in planned.plan.sources if t.key_format == "avro"}
    for topic in planned.plan.sources:
        if topic.name in key_ids:
            schemas[key_ids[topic.name]] = key_schema(topic.key_type, "Key")
    return Wire(planned=planned, schemas=schemas, ids=ids, key_ids=key_ids)


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


def check_outputs(wire: Wire, case: Case) -> None:
    """Refuse rows that are expected in no output, or in one of several that is not named.

    Raises:
        ModelError: With the nearest name.
    """
    outputs = [sink.target for sink in wire.planned.plan.sinks]
    if len(outputs) == 1:
        return
    lists = {
        "expect": [row.topic for row in case.expect or ()],
        "expect_table": [row.topic for row, _ in case.table or ()],
    }
    for part, named in lists.items():
        if None in named:
            raise ModelError(
                f"row {named.index(None) + 1} of {part} names none of several outputs",
                case.at,
                f"write topic: with one of {', '.join(outputs)}",
            )
    names = [name for named in lists.values() for name in named]
    raise_all(UnknownName("output", n, outputs, case.at) for n in names if n and n not in outputs)


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
            "key": _key(wire, record),
            "value": _encoded(wire, record),
            "headers": [{"key": name, "value": value} for name, value in record.headers],
        }
        for record in given
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)


def emitted_rows(wire: Wire, output: pa.Table, batch: int) -> list[tuple[Row, bytes | None]]:
    """Return the rows of a batch in order, each with its value as it was written."""
    found = [row for row in output.to_pylist() if row["kind"] == ROW]
    return [
        (
            Row(
                topic=row["topic"],
                key=shown_key(wire.planned.plan, row["topic"], row["key"], wire.schemas),
                value=value,
                batch=batch,
                at=row["timestamp"],
                headers=_shown_headers(row["headers"]),
            ),
            row["value"],
        )
        for row, value in zip(found, _values(wire, found), strict=True)
    ]


def written_letters(output: pa.Table) -> list[Letter]:
    """Return the dead letters of a batch."""
    return [_letter(row["headers"]) for row in output.to_pylist() if row["kind"] == DEAD_LETTER]


def _key(wire: Wire, record: Given) -> bytes | None:
    topic = next(topic for topic in wire.planned.plan.sources if topic.name == record.topic)
    if record.key is None:
        return None
    if topic.key_format == "avro":
        number = wire.key_ids[topic.name]
        schema = IdSchema(number, as_record(wire.schemas[number]))
        text, columns = as_object(record.key, topic.key_type), key_columns(topic.key_type)
        return _written(record, "key", text, columns, "avro", schema)
    try:
        return key_of_text(topic.key_format, record.key.decode())
    except ValueError as error:
        message = f"the key is none of format {topic.key_format}: {error}"
        raise ModelError(message, record.at, "correct it") from error


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
    return _written(record, "value", value.encode(), columns, topic.format, schema)


def _written(
    record: Given,
    part: str,
    text: bytes,
    columns: Sequence[Column],
    form: str,
    schema: IdSchema | None,
) -> bytes | None:
    """Return a JSON object in another format."""
    decoded = format_of("json").decode(pa.array([text], pa.binary()), columns, no_schema)
    encoded = format_of(form).encoder(columns, schema).encode(decoded.table)
    bad = [*decoded.bad, *encoded.bad]
    if bad:
        message = f"the {part} does not fit the columns of '{record.topic}': {bad[0].message}"
        raise ModelError(message, record.at, "correct it, or give the bytes as raw_base64")
    return encoded.values[0]


def _values(wire: Wire, rows: Sequence[Mapping[str, Any]]) -> list[Json]:
    found: dict[int, Json] = {}
    for sink in topic_sinks(wire.planned.plan):
        own = (n for n, row in enumerate(rows) if row["topic"] == sink.topic)
        places = [n for n in own if rows[n]["value"] is not None]
        raw: list[bytes] = [rows[n]["value"] for n in places]
        found |= zip(places, _decoded(wire, sink, raw), strict=True)
    return [found.get(n) for n in range(len(rows))]


def _decoded(wire: Wire, sink: TopicSink, raw: Sequence[bytes]) -> list[Json]:
    form = format_of(sink.format)
    if form.traits.is_json:
        return [parse_json(value) for value in raw]
    columns = columns_of(wire.planned.plan, sink)
    if sink.avro_schema is not None:
        columns = form.columns(Evidence.of_schema(sink.avro_schema)) or columns
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


def _shown_headers(headers: Sequence[Mapping[str, Any]] | None) -> tuple[tuple[str, Any], ...]:
    """Return headers as people read them: bytes that are no text are escaped."""
    found = ((each["key"], each["value"]) for each in headers or ())
    return tuple((n, None if value is None else text_of_key("text", value)) for n, value in found)

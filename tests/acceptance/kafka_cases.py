"""Runs cases of case files from Kafka to Kafka: all records wait when the pipelines start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from kaflow_engine.connectors.kafka.admin import create_topic, delete_topics
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.flow.graph import topic_sinks
from kaflow_engine.formats.contract import format_of
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.config import Config
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.telemetry.progress import PipelineSummary
from kaflow_engine.testing.cases.compare import Difference, Outcome, compare
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings, plan_case
from kaflow_engine.testing.cases.records import (
    Wire,
    emitted_rows,
    partitions_of,
    records_table,
    wire_of,
    written_letters,
)
from kaflow_engine.testing.cases.specs import Case

FOLDER = Path(__file__).parent / "cases"
AROUND = Surroundings(variables={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a case left behind."""

    case: Case
    planned: PlannedPipeline
    """As it ran."""
    rows: pa.Table
    """The output topic, schema RECORDS."""
    letters: pa.Table
    """The topic of dead letters, schema RECORDS."""
    outcome: Outcome
    summary: PipelineSummary

    @property
    def differences(self) -> Sequence[Difference]:
        """What is not as the case expects."""
        return compare(self.case, self.outcome, as_given=False, keeps_order=False)


def cases_of(file: str) -> tuple[Case, ...]:
    """Read a case file of this folder."""
    return load_cases(FOLDER / file, {})


def config_for(broker, path, registry=None, use_avro=False) -> Config:
    """A configuration with everything else left at its default."""
    kafka = {"brokers": broker.bootstrap, "useAvro": use_avro}
    if registry is not None:
        kafka["schemaRegistry"] = registry.url
    return Config.model_validate({"kafka": kafka, "state": {"rocksdb": {"path": str(path)}}})


def run_cases(spark, cases: Sequence[Case], config: Config) -> dict[str, Ran]:
    """Load the topics of all cases, run their pipelines at once until caught up, read the rest."""
    from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

    kafka = KafkaSettings.of(config.kafka.brokers)
    wires = {case.name: load(case, config) for case in cases}
    planned = prepare([wire.planned.spec for wire in wires.values()], config)
    plans = [each.plan for each in planned]
    summary = run_pipelines(plans, config, until_caught_up=True, spark=spark)
    return {
        case.name: _ran(case, wire, each, summary.pipelines[each.plan.name], kafka, config)
        for (case, wire), each in zip(
            ((case, wires[case.name]) for case in cases), planned, strict=True
        )
    }


def load(case: Case, config: Config) -> Wire:
    """Create the topics of a case again, and send its records, each to its partition."""
    kafka = KafkaSettings.of(config.kafka.brokers)
    wire = _registered(wire_of(plan_case(case, AROUND)), config)
    for topic, partitions in partitions_of(wire, case.given).items():
        new_topic(kafka, topic, len(partitions))
    producer = open_producer(kafka, **{"enable.idempotence": True}).api  # keeps the order
    for row in records_table(wire, case.given).to_pylist():
        producer.produce(
            row["topic"],
            row["value"],
            row["key"],
            partition=row["partition"],
            timestamp=row["timestamp"],
            headers=[(header["key"], header["value"]) for header in row["headers"]],
        )
    assert producer.flush(30) == 0
    return wire


def new_topic(kafka: KafkaSettings, topic: str, partitions: int) -> None:
    """Create a topic; one that another test has left behind goes."""
    if not create_topic(kafka, topic, partitions):
        delete_topics(kafka, [topic])
        assert create_topic(kafka, topic, partitions)


def _registered(wire: Wire, config: Config) -> Wire:
    """Register the schemas of inputs that have one, and use the registry's ids."""
    if not wire.ids and not wire.key_ids:
        return wire
    assert config.kafka.schema_registry is not None
    registry = Registry(url=config.kafka.schema_registry)
    forms = {topic.name: format_of(topic.format) for topic in wire.planned.plan.sources}
    ids = {
        topic: forms[topic].register(registry, f"{topic}-value", wire.schemas[number])
        for topic, number in wire.ids.items()
    }
    keys = {
        topic: format_of("avro").register(registry, f"{topic}-key", wire.schemas[number])
        for topic, number in wire.key_ids.items()
    }
    schemas = {ids[topic]: wire.schemas[n] for topic, n in wire.ids.items()}
    schemas |= {keys[topic]: wire.schemas[n] for topic, n in wire.key_ids.items()}
    return replace(wire, ids=ids, key_ids=keys, schemas=schemas)


def _ran(
    case: Case,
    wire: Wire,
    planned: PlannedPipeline,
    summary: PipelineSummary,
    kafka: KafkaSettings,
    config: Config,
) -> Ran:
    (sink,) = topic_sinks(planned.plan)
    rows = read_all(kafka, sink.topic)
    letters = read_all(kafka, planned.plan.dead_letter_topic)
    schemas = _schemas_of(rows, config) if sink.avro_schema else {}
    found = emitted_rows(replace(wire, schemas=schemas), _of_kind(rows, 0), 1)
    return Ran(
        case=case,
        planned=planned,
        rows=rows,
        letters=letters,
        outcome=Outcome(
            outputs=(sink.topic,),
            rows=tuple(row for row, _ in found),
            raw=tuple(value for _, value in found),
            letters=tuple(written_letters(_of_kind(letters, 1))),
            counters=summary.counters,
        ),
        summary=summary,
    )


def _schemas_of(rows: pa.Table, config: Config) -> Mapping[int, str]:
    """Ask the registry for every schema that values name."""
    assert config.kafka.schema_registry is not None
    registry = Registry(url=config.kafka.schema_registry)
    ids = {int.from_bytes(value[1:5]) for value in rows["value"].to_pylist()}
    return {number: registry.by_id(number) for number in ids}


def _of_kind(rows: pa.Table, kind: int) -> pa.Table:
    return rows.append_column("kind", pa.array([kind] * rows.num_rows, pa.int8()))

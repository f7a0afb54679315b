"""Messages through a pipeline in this process: what it would write, and what it refuses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.connectors.kafka.topic_schemas import with_types
from kaflow_engine.errors import ModelError
from kaflow_engine.flow.records import DEAD_LETTER, RECORDS, ROW
from kaflow_engine.flow.sinks import Sink, TopicSink
from kaflow_engine.formats.contract import Evidence, format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.relations.relation_specs import BatchSpec, RelationSpec
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.runtime.planning.columns import attached_columns
from kaflow_engine.sql.named.attached import attached_names, attached_text
from kaflow_engine.sql.pipeline import pipeline_topics
from kaflow_engine.testing.local.executor import LocalPipeline
from kaflow_engine.testing.local.shown import as_topic

LARGEST_RUN = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message that the pipeline refuses."""

    offset: int
    """Which message, counted from 0; -1: it is about no message alone."""
    phase: str
    error: str
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoked:
    """What came of the messages."""

    rows: tuple[str, ...]
    letters: tuple[Letter, ...]


def invoke(
    spec: PipelineSpec,
    config: Config,
    messages: Sequence[bytes],
    at: int,
    *,
    whole: bool = True,
    cuts: Sequence[int] = (),
) -> Invoked:
    """Send messages through a pipeline to its end; nothing is written anywhere.

    Args:
        spec: It reads one topic, or one other source.
        config: How databases are reached that it looks up.
        messages: JSON, in their order.
        at: The time of all of them, and of the batch, in epoch milliseconds.
        whole: Runs of rows are as long as there are messages; False: as the file says.
        cuts: How many messages are in each batch; the last one has the rest.

    Raises:
        ModelError: It is wrong.
        KaflowError: A message stops it.
    """
    (name, *_) = [topic for topic in pipeline_topics(spec) if topic not in attached_names(spec)]
    own = _as_json(spec, whole=whole)
    schemas = _schemas(own, config, name, messages)
    if schemas is None:
        return Invoked(rows=(), letters=())
    plan = build_plan(own, config, schemas).plan
    plan = replace(plan, sinks=tuple(map(_as_line, plan.sinks)), dimensions_first=False)
    reached = {
        (kind, connection): said.settings
        for kind, known in config.connections.items()
        for connection, said in known.items()
    }
    pipeline = LocalPipeline(plan, {name: [0]}, connections=reached)
    tables, begun = list[pa.Table](), 0
    for size in (*cuts, max(len(messages) - sum(cuts), 0)):
        records = _records(name, messages[begun : begun + size], begun, at)
        tables.append(pipeline.run(records, at).output)
        begun += size
    return _invoked(pa.concat_tables([*tables, pipeline.end(at).output]))


def _as_json(spec: PipelineSpec, *, whole: bool) -> PipelineSpec:
    topics = {n: said.model_copy(update={"format": "json"}) for n, said in spec.topics.items()}
    relations = {
        name: _whole(said) if whole and isinstance(said, RelationSpec) else said
        for name, said in spec.relations.items()
    }
    return spec.model_copy(update={"topics": topics, "relations": relations})


def _whole(said: RelationSpec) -> RelationSpec:
    if said.batch is None:
        return said
    return said.model_copy(update={"batch": BatchSpec(size=LARGEST_RUN)})


def _schemas(
    spec: PipelineSpec, config: Config, name: str, messages: Sequence[bytes]
) -> Mapping[str, tuple[Column, ...]] | None:
    """Return the columns of what is read; None: no message shows them."""
    found: dict[str, tuple[Column, ...]] = {}
    for each in dict.fromkeys([*pipeline_topics(spec), *attached_names(spec)]):
        attached = attached_text(spec, each)
        declared = declared_columns(spec, each)
        if declared is not None:
            found[each] = declared
        elif attached is not None:
            found[each] = attached_columns(config, attached)
        else:
            evidence = Evidence(sample=lambda: list(messages), schema=_none)
            sampled = format_of("json").columns(evidence)
            if not sampled:
                return None
            found[each] = with_types(spec, each, sampled)
    if name not in found:
        raise ModelError("the pipeline reads nothing", spec.at)
    return found


def _none() -> None:
    return None


def _as_line(sink: Sink) -> TopicSink:
    """Let a sink give its rows as the console prints them; no registry is asked for schemas."""
    topic = replace(as_topic(sink), format="json_spaced", avro_schema=None)
    if topic.key_schema is None:
        return topic
    return replace(topic, key_format="json", key_schema=None)


def _records(name: str, messages: Sequence[bytes], first: int, at: int) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {
            "topic": name,
            "partition": 0,
            "offset": first + number,
            "timestamp": at,
            "key": None,
            "value": message,
            "headers": [],
        }
        for number, message in enumerate(messages)
    ]
    return pa.Table.from_pylist(rows, RECORDS)


def _invoked(output: pa.Table) -> Invoked:
    rows = output.filter(pc.equal(output["kind"], ROW)).to_pylist()
    letters = output.filter(pc.equal(output["kind"], DEAD_LETTER)).to_pylist()
    return Invoked(
        rows=tuple(row["value"].decode() for row in rows if row["value"] is not None),
        letters=tuple(_letter(row) for row in letters),
    )


def _letter(row: Mapping[str, Any]) -> Letter:
    said = {each["key"]: (each["value"] or b"").decode() for each in row["headers"]}
    return Letter(
        offset=int(said.get("kaflow.offset") or -1),
        phase=said["kaflow.phase"],
        error=said["kaflow.message"],
        value=row["value"],
    )

"""A source in phases: tables and files that end, and then a topic of Kafka from where they do."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Discriminator, Tag

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import ClusterName, Filled, Topic, refuse, topic_target
from kaflow_engine.model.sources.database_specs import ClickHouseTableSpec, PostgresTableSpec
from kaflow_engine.model.sources.source_spec import SourceSpec
from kaflow_engine.model.spec import CHOICE, Path, Spec, type_of

PHASES = ("clickhouse", "files", "postgres")


def _partitions(offsets: dict[str, int] | None) -> dict[str, int] | None:
    for partition, offset in (offsets or {}).items():
        if not partition.isdecimal() or offset < 0:
            raise refuse("is not an offset of each partition", "write {0: 1200, 1: 980}")
    return offsets


class FilesPhaseSpec(Spec):
    """Files of a folder that are there when the phase is read."""

    type: Literal["files"]
    path: Filled
    format: Literal["parquet", "json"] = "parquet"
    settle: Duration = 2_000

    @property
    def about(self) -> str:
        """Where they are."""
        return f"{self.format} files of {self.path}"


class PostgresPhaseSpec(PostgresTableSpec):
    """A table of a PostgreSQL database as a phase."""


class ClickHousePhaseSpec(ClickHouseTableSpec):
    """A table of a ClickHouse server as a phase."""


def _phase(value: object) -> str:
    kind = type_of(value)
    return f"{CHOICE}{kind}" if kind in PHASES else f"{CHOICE}clickhouse"


AnyPhase = Annotated[
    Annotated[ClickHousePhaseSpec, Tag("\0clickhouse")]
    | Annotated[FilesPhaseSpec, Tag("\0files")]
    | Annotated[PostgresPhaseSpec, Tag("\0postgres")],
    Discriminator(_phase),
]


class OffsetColumnsSpec(Spec):
    """Columns of the last phase that say which record of the topic a row was."""

    partition: Filled
    """The column with the partition."""
    offset: Filled
    """The column with the offset."""


class HandoverSpec(Spec):
    """From where the topic is read: one of these."""

    columns: OffsetColumnsSpec | None = None
    """Behind the greatest offset that the table of the last phase has of each partition when the
    state begins; of that phase only rows in front of it are read."""
    offsets: Annotated[dict[str, int] | None, AfterValidator(_partitions)] = None
    """Of each partition."""
    time: AwareDatetime | None = None
    """The first record that is not before it, by Kafka's timestamps."""
    query: Filled | None = None
    """SQL for the database of the last phase: partitions, and the first offset that is read of
    each."""
    start_at: Literal["earliest", "latest"] | None = None
    """At the topic's first record, or behind its last one when the state begins: what the phases
    and the topic both have comes twice."""


def _some(phases: tuple[AnyPhase, ...]) -> tuple[AnyPhase, ...]:
    if not phases:
        raise refuse("must have a phase", "add {type: clickhouse, table_name: …}")
    return phases


class HybridSourceSpec(SourceSpec):
    """Phases one after the other, and then a topic."""

    type: Literal["hybrid"]
    phases: Annotated[tuple[AnyPhase, ...], AfterValidator(_some)]
    """Tables and files that end, each with its `type` and the keys of that: one after the other."""
    topic: Topic | None = None
    """Records, each as a row of the phases; None: it ends with the last phase."""
    topic_format: Literal["json", "avro"] = "json"
    """Of its values; those of Avro name their schema in the registry of its cluster."""
    cluster: ClusterName | None = None
    """Where the topic is, of `kafka.clusters`; None: where topics are that name none."""
    handover: HandoverSpec = HandoverSpec()
    """From where the topic is read."""
    job: bool = False
    """It ends with the last phase, though there is a topic."""

    @property
    def about(self) -> str:
        """The phases, and what follows them."""
        said = [phase.about for phase in self.phases]
        if self.reads_topic:
            target = topic_target(self.topic or "", self.cluster or "")
            form = " (Avro)" if self.reads_avro else ""
            said.append(f"topic {target}{form} from {self._start}")
        return f"hybrid: {'; then '.join(said)}"

    @property
    def reads_topic(self) -> bool:
        """Whether a topic follows the phases."""
        return self.topic is not None and not self.job

    @property
    def ends(self) -> bool:
        """With the last phase, where no topic follows."""
        return not self.reads_topic

    @property
    def reads_avro(self) -> bool:
        """Whether that topic's records are Avro."""
        return self.reads_topic and self.topic_format == "avro"

    @property
    def guarantee(self) -> str | None:
        """What is promised of its records."""
        ends = "" if self.reads_topic else "; ends with the last phase"
        both = "; what the phases and the topic both have comes twice" if self.may_repeat else ""
        return f"each row and record exactly once, all of a phase before the next{both}{ends}"

    @property
    def may_repeat(self) -> bool:
        """Whether the topic begins anywhere, so that rows of the phases may come once more."""
        return self.reads_topic and self.handover.start_at is not None

    @property
    def record_time(self) -> str:
        """That of what it reads."""
        return "time when the page of a row was read, or its file written; then the topic's"

    @property
    def _start(self) -> str:
        if self.handover.columns is not None:
            columns = self.handover.columns
            return f"behind {columns.offset} by {columns.partition} of the last phase"
        if self.handover.query is not None:
            return "offsets that a query gives"
        if self.handover.start_at is not None:
            return {"earliest": "its first record", "latest": "its end"}[self.handover.start_at]
        return "a time" if self.handover.time is not None else "given offsets"


def with_phases(
    sources: Mapping[str, SourceSpec],
) -> Iterator[tuple[Path, SourceSpec | AnyPhase]]:
    """Yield sources, and behind each the phases it has, with where a pipeline's file says so."""
    for name, said in sources.items():
        yield ("sources", name), said
        if isinstance(said, HybridSourceSpec):
            for number, phase in enumerate(said.phases):
                yield ("sources", name, "phases", number), phase

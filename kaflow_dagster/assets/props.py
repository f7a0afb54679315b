"""What a translator is given: topics, streams, tables, and what is read or written elsewhere."""

from dataclasses import dataclass

from kaflow_dagster.assets.groups import SHARED
from kaflow_dagster.assets.views import PipelineOutput, PipelineView
from kaflow_engine.api.plan import Column, SinkPart, SourcePart, TablePart, TopicPart


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProps:
    """A Kafka topic that pipelines read or write."""

    name: str
    """In front of it that of its cluster, if it has one: `west/orders`."""
    group: str = SHARED
    """Of assets, where no pipeline writes it."""
    description: str = ""
    columns: tuple[Column, ...] = ()
    """Empty where no one declares them."""
    history: str | None = None
    """Where files are that it begins in."""
    output: PipelineOutput | None = None
    """Whose rows it holds."""
    dead_letters_of: PipelineView | None = None

    @property
    def writer(self) -> PipelineView | None:
        """The pipeline whose rows it holds."""
        return self.output.pipeline if self.output else None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamProps:
    """The running of a pipeline: health, rates, lag."""

    pipeline: PipelineView

    @property
    def name(self) -> str:
        """Of the pipeline."""
        return self.pipeline.name


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProps:
    """A table that a pipeline writes."""

    output: PipelineOutput

    @property
    def pipeline(self) -> PipelineView:
        """Which writes it."""
        return self.output.pipeline

    @property
    def name(self) -> str:
        """Of the table."""
        return self.part.name

    @property
    def part(self) -> TablePart:
        """Where it is, and its partitions."""
        assert self.output.part.table is not None
        return self.output.part.table


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkProps:
    """What a pipeline writes elsewhere: to a database, to its output, or nowhere."""

    output: PipelineOutput

    @property
    def name(self) -> str:
        """Of the output, without its kind."""
        return self.part.target.partition(":")[2]

    @property
    def part(self) -> SinkPart:
        """Its kind, and what the author says of it."""
        assert self.output.part.sink is not None
        return self.output.part.sink


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProps:
    """What a pipeline reads that is no topic: files of a folder, made-up records."""

    pipeline: PipelineView
    topic: TopicPart
    """How its records are read."""

    @property
    def name(self) -> str:
        """What queries call it."""
        return self.topic.name

    @property
    def part(self) -> SourcePart:
        """Its kind, and where it is."""
        assert self.topic.source is not None
        return self.topic.source


Props = TopicProps | StreamProps | TableProps | SinkProps | SourceProps

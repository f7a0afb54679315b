"""From topics, streams and tables to Dagster's asset specs; subclass it to change them."""

import re
import warnings
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import dagster as dg

from kaflow_dagster.assets.groups import SHARED
from kaflow_dagster.assets.views import PipelineOutput, PipelineView
from kaflow_engine.api.plan import Column, LineagePart, TablePart


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProps:
    """A Kafka topic that pipelines read or write."""

    name: str
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


Props = TopicProps | StreamProps | TableProps


class KaflowTranslator:
    """Decides what assets look like.

    Override `get_asset_spec` to change them; what it returns for the same topic must have the same
    key, whoever reads or writes the topic.
    """

    def get_asset_spec(self, props: Props) -> dg.AssetSpec:
        """Return the asset of a topic, of a table, or of the running of a pipeline."""
        if isinstance(props, StreamProps):
            return self._stream(props.pipeline)
        if isinstance(props, TableProps):
            return self._table(props)
        return self._topic(props)

    def topic_key(self, topic: str) -> dg.AssetKey:
        """Return the key of a topic's asset."""
        return self.get_asset_spec(TopicProps(name=topic)).key

    def stream_key(self, pipeline: PipelineView) -> dg.AssetKey:
        """Return the key of the asset that stands for the running of a pipeline."""
        return self.get_asset_spec(StreamProps(pipeline=pipeline)).key

    def output_key(self, output: PipelineOutput) -> dg.AssetKey:
        """Return the key of what is written, a table or a topic."""
        if output.part.topic is not None:
            return self.topic_key(output.part.topic)
        return self.get_asset_spec(TableProps(output=output)).key

    def _stream(self, pipeline: PipelineView) -> dg.AssetSpec:
        topics = pipeline.explanation.topics if pipeline.explanation else ()
        return dg.AssetSpec(
            key=["streams", pipeline.name],
            description=_about_stream(pipeline),
            deps=[self.topic_key(topic.name) for topic in topics],
            group_name=pipeline.asset_group,
            kinds={"spark", "kafka"},
            owners=_owners(pipeline),
            tags=_tags(pipeline),
            code_version=pipeline.version or None,
            # with its first batch it begins to report every minute (`stream.REPORT_S`), whether or
            # not there is something to read
            freshness_policy=dg.FreshnessPolicy.time_window(
                fail_window=timedelta(minutes=5), warn_window=timedelta(minutes=2)
            ),
            metadata={
                **_source(pipeline),
                **{f"meta/{name}": text for name, text in pipeline.meta.items()},
                "kaflow/sql": dg.MetadataValue.md(f"```sql\n{pipeline.query.strip()}\n```"),
                "kaflow/plan": dg.MetadataValue.md(f"```\n{pipeline.drawing}\n```"),
            },
        )

    def _table(self, table: TableProps) -> dg.AssetSpec:
        writer, part = table.pipeline, table.part
        return dg.AssetSpec(
            key=dg.AssetKey(["tables", part.name]),
            description=table.output.about.description
            or f"Delta table of pipeline `{writer.name}`, by {part.partition}.",
            deps=self._upstream(table.output),
            group_name=writer.asset_group,
            kinds={"deltalake"},
            owners=_owners(writer),
            tags=_tags(writer),
            code_version=writer.version or None,
            partitions_def=partitions_of(part),
            metadata={
                **_source(writer),
                "dagster/uri": part.path,
                "dagster/table_name": part.name,
                "dagster/storage_kind": "deltalake",
                "dagster/partition_expr": f"_{part.partition}",
                **self._columns(table.output),
            },
        )

    def _topic(self, topic: TopicProps) -> dg.AssetSpec:
        key = dg.AssetKey(["kafka", topic.name])
        writer = topic.writer or topic.dead_letters_of
        if writer is None:
            return dg.AssetSpec(
                key=key,
                description=topic.description or f"Kafka topic `{topic.name}`.",
                group_name=topic.group,
                kinds={"kafka"},
                metadata={**_address(topic), **self._columns(None, topic.columns)},
            )
        what = "Rows" if topic.writer else "Dead letters"
        said = topic.output.about.description if topic.output else None
        return dg.AssetSpec(
            key=key,
            description=said or f"{what} of pipeline `{writer.name}`.",
            deps=self._upstream(topic.output) if topic.output else [self.stream_key(writer)],
            group_name=writer.asset_group,
            kinds={"kafka"},
            owners=_owners(writer),
            tags=_tags(writer),
            metadata={
                **_source(writer),
                **_address(topic),
                **self._columns(topic.output, topic.columns),
            },
        )

    def _upstream(self, output: PipelineOutput) -> list[dg.AssetKey]:
        """Return what an output is made of: the stream; where it reads for several chains, also
        the topics of its own ones.
        """
        writer = output.pipeline
        about = writer.explanation
        topics = about.topics_of(output.part) if about and len(about.chains) > 1 else ()
        return [self.stream_key(writer), *(self.topic_key(topic) for topic in topics)]

    def _columns(
        self, output: PipelineOutput | None, known: tuple[Column, ...] = ()
    ) -> dict[str, object]:
        written = output.part if output else None
        about = output.about.columns if output else {}
        lineage = {part.column: part for part in written.lineage} if written else {}
        columns = written.columns if written and written.columns else known
        key = written.key if written else None
        found: dict[str, object] = {}
        if columns:
            found["dagster/column_schema"] = dg.TableSchema(
                columns=[
                    _column(column, about.get(column.name), lineage.get(column.name), key)
                    for column in columns
                ]
            )
        if lineage:
            found["dagster/column_lineage"] = dg.TableColumnLineage(
                {
                    name: [
                        dg.TableColumnDep(self.topic_key(source), column)
                        for source, column in part.sources
                    ]
                    for name, part in lineage.items()
                }
            )
            # the open-source page draws no column lineage
            found["kaflow/lineage"] = dg.MetadataValue.md(_lineage_table(list(lineage.values())))
        return found


def partitions_of(table: TablePart) -> dg.TimeWindowPartitionsDefinition:
    """Return the partitions of a table, called as its folders are."""
    start = table.start or date(datetime.now(UTC).year - 1, 1, 1)
    if table.partition == "hour":
        return dg.HourlyPartitionsDefinition(f"{start}-00", fmt="%Y-%m-%d-%H", timezone="UTC")
    return dg.DailyPartitionsDefinition(str(start), timezone="UTC")


def _column(
    column: Column, about: str | None, lineage: LineagePart | None, key: str | None
) -> dg.TableColumn:
    sources = lineage.sources if lineage else ()
    return dg.TableColumn(
        name=column.name,
        type=column.type,
        description=about,
        constraints=dg.TableColumnConstraints(nullable=column.name != key),
        tags={_tag_key(f"from_{topic}.{name}"): "" for topic, name in sources},
    )


def _lineage_table(parts: list[LineagePart]) -> str:
    lines = ["| column | comes from |", "|---|---|"]
    for part in parts:
        sources = ", ".join(f"`{topic}.{name}`" for topic, name in part.sources)
        lines.append(f"| `{part.column}` | {sources or 'no column'} |")
    return "\n".join(lines)


def _about_stream(pipeline: PipelineView) -> str:
    """Return a first line that fits a row of the catalog, then the rest."""
    if pipeline.problem:
        return f"BROKEN, cannot run: {pipeline.problem}"
    explained = pipeline.explanation
    about = explained.description if explained else None
    return " ".join(about.split()) if about else f"The stream of pipeline `{pipeline.name}`."


def _source(pipeline: PipelineView) -> dict[str, object]:
    with warnings.catch_warnings():
        # the only way to link to the source, and beta for years
        warnings.simplefilter("ignore", dg.BetaWarning)
        place = dg.LocalFileCodeReference(file_path=pipeline.file, line_number=pipeline.line)
        found = dg.CodeReferencesMetadataValue(code_references=[place])
    return {"dagster/code_references": found}


def _address(topic: TopicProps) -> dict[str, object]:
    found: dict[str, object] = {"dagster/table_name": topic.name, "dagster/storage_kind": "kafka"}
    if topic.history is not None:
        found["kaflow/history"] = dg.MetadataValue.text(topic.history)
    return found


def _owners(pipeline: PipelineView) -> list[str]:
    """Return owners as Dagster wants them: an address, or the name of a team."""
    teams = [re.sub(r"[^A-Za-z0-9_-]", "_", o) if "@" not in o else o for o in pipeline.owners]
    return [owner if "@" in owner else f"team:{owner}" for owner in teams]


def _tags(pipeline: PipelineView) -> dict[str, str]:
    return {_tag_key(name): _tag_value(value) for name, value in pipeline.tags.items()}


def _tag_key(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:63]


def _tag_value(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:63]

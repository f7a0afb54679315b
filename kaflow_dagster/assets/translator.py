"""From topics, streams and tables to Dagster's asset specs; subclass it to change them."""

from datetime import UTC, date, datetime, timedelta

import dagster as dg

from kaflow_dagster.assets.metadata import (
    about_stream,
    column_of,
    facts_of,
    lineage_table,
    owners_of,
    source_of,
    tags_of,
)
from kaflow_dagster.assets.props import (
    Props,
    SinkProps,
    SourceProps,
    StreamProps,
    TableProps,
    TopicProps,
)
from kaflow_dagster.assets.views import PipelineOutput, PipelineView
from kaflow_engine.api.plan import Column, TablePart


class KaflowTranslator:
    """Decides what assets look like.

    Override `get_asset_spec` to change them; what it returns for the same topic must have the same
    key, whoever reads or writes the topic.
    """

    def get_asset_spec(self, props: Props) -> dg.AssetSpec:
        """Return the asset of a topic, of a table, of what is read or written elsewhere, or of the
        running of a pipeline.
        """
        if isinstance(props, StreamProps):
            return self._stream(props.pipeline)
        if isinstance(props, TableProps):
            return self._table(props)
        if isinstance(props, SinkProps):
            return self._sink(props)
        if isinstance(props, SourceProps):
            return self._source(props)
        return self._topic(props)

    def topic_key(self, topic: str) -> dg.AssetKey:
        """Return the key of a topic's asset."""
        return self.get_asset_spec(TopicProps(name=topic)).key

    def input_key(self, pipeline: PipelineView, name: str) -> dg.AssetKey:
        """Return the key of what a pipeline reads by a name: a topic, or a source of its own."""
        read = pipeline.explanation.topics if pipeline.explanation else ()
        for topic in read:
            if topic.name == name and topic.source is not None:
                return self.get_asset_spec(SourceProps(pipeline=pipeline, topic=topic)).key
            if topic.name == name:
                return self.topic_key(topic.target)
        return self.topic_key(name)

    def stream_key(self, pipeline: PipelineView) -> dg.AssetKey:
        """Return the key of the asset that stands for the running of a pipeline."""
        return self.get_asset_spec(StreamProps(pipeline=pipeline)).key

    def output_key(self, output: PipelineOutput) -> dg.AssetKey:
        """Return the key of what is written: a topic, a table, or what another sink holds."""
        if output.part.topic is not None:
            return self.topic_key(output.part.target)
        if output.part.sink is not None:
            return self.get_asset_spec(SinkProps(output=output)).key
        return self.get_asset_spec(TableProps(output=output)).key

    def _stream(self, pipeline: PipelineView) -> dg.AssetSpec:
        topics = pipeline.explanation.topics if pipeline.explanation else ()
        return dg.AssetSpec(
            key=["streams", pipeline.name],
            description=about_stream(pipeline),
            deps=[self.input_key(pipeline, topic.name) for topic in topics],
            group_name=pipeline.asset_group,
            kinds={"spark", "kafka"},
            owners=owners_of(pipeline),
            tags=tags_of(pipeline),
            code_version=pipeline.version or None,
            # with its first batch it begins to report every minute (`stream.REPORT_S`), whether or
            # not there is something to read
            freshness_policy=dg.FreshnessPolicy.time_window(
                fail_window=timedelta(minutes=5), warn_window=timedelta(minutes=2)
            ),
            metadata={
                **source_of(pipeline),
                **facts_of(pipeline),
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
            owners=owners_of(writer),
            tags=tags_of(writer),
            code_version=writer.version or None,
            partitions_def=partitions_of(part),
            metadata={
                **source_of(writer),
                "dagster/uri": part.path,
                "dagster/table_name": part.name,
                "dagster/storage_kind": "deltalake",
                "dagster/partition_expr": f"_{part.partition}",
                **self._columns(table.output),
            },
        )

    def _sink(self, sink: SinkProps) -> dg.AssetSpec:
        writer, part = sink.output.pipeline, sink.part
        name = sink.name
        # A table of a database is one thing; what is printed or dropped is the pipeline's own.
        place = _shared_place(name) if part.shared else [writer.name, name]
        uri = {"dagster/uri": name} if "://" in name else {}
        table = dict(part.settings).get("table", name)
        shared = {"dagster/table_name": table, "dagster/storage_kind": part.kind}
        return dg.AssetSpec(
            key=dg.AssetKey([part.kind, *place]),
            description=sink.output.about.description or f"Rows of pipeline `{writer.name}`.",
            deps=self._upstream(sink.output),
            group_name=writer.asset_group,
            kinds={part.kind},
            owners=owners_of(writer),
            tags=tags_of(writer),
            code_version=writer.version or None,
            metadata={
                **source_of(writer),
                **({**shared, **uri} if part.shared else {}),
                **self._columns(sink.output),
            },
        )

    def _source(self, source: SourceProps) -> dg.AssetSpec:
        reader, part, name = source.pipeline, source.part, source.name
        where = {} if part.path is None else {"dagster/uri": part.path}
        return dg.AssetSpec(
            key=dg.AssetKey([part.kind, reader.name, name]),
            description=reader.topics.get(name) or f"{part.about}; read by `{reader.name}`.",
            group_name=reader.asset_group,
            kinds={part.kind} if part.format is None else {part.kind, part.format},
            owners=owners_of(reader),
            tags=tags_of(reader),
            metadata={
                **source_of(reader),
                **where,
                **self._columns(None, source.topic.columns or ()),
            },
        )

    def _topic(self, topic: TopicProps) -> dg.AssetSpec:
        key = dg.AssetKey(["kafka", *topic.name.split("/")])
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
            owners=owners_of(writer),
            tags=tags_of(writer),
            metadata={
                **source_of(writer),
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
        return [self.stream_key(writer), *(self.input_key(writer, topic) for topic in topics)]

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
                    column_of(column, about.get(column.name), lineage.get(column.name), key)
                    for column in columns
                ]
            )
        if lineage and output:
            found["dagster/column_lineage"] = dg.TableColumnLineage(
                {
                    name: [
                        dg.TableColumnDep(self.input_key(output.pipeline, source), column)
                        for source, column in part.sources
                    ]
                    for name, part in lineage.items()
                }
            )
            # the open-source page draws no column lineage
            found["kaflow/lineage"] = dg.MetadataValue.md(lineage_table(list(lineage.values())))
        return found


def _shared_place(name: str) -> list[str]:
    """Return what a table or folder is called: its schema or bucket first."""
    scheme, _, folder = name.rpartition("://")
    return folder.split("/") if scheme else name.split(".")


def partitions_of(table: TablePart) -> dg.TimeWindowPartitionsDefinition:
    """Return the partitions of a table, called as its folders are."""
    start = table.start or date(datetime.now(UTC).year - 1, 1, 1)
    if table.partition == "hour":
        return dg.HourlyPartitionsDefinition(f"{start}-00", fmt="%Y-%m-%d-%H", timezone="UTC")
    return dg.DailyPartitionsDefinition(str(start), timezone="UTC")


def _address(topic: TopicProps) -> dict[str, object]:
    cluster, _, name = topic.name.rpartition("/")
    found: dict[str, object] = {"dagster/table_name": name, "dagster/storage_kind": "kafka"}
    if cluster:
        found["kaflow/cluster"] = dg.MetadataValue.text(cluster)
    if topic.history is not None:
        found["kaflow/history"] = dg.MetadataValue.text(topic.history)
    return found

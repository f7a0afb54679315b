"""Rows for checks: of a table, or the newest records of a topic."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from kaflow_engine.connectors.delta.table import partition_rows, read_partitions
from kaflow_engine.connectors.kafka.clusters.input_topics import cluster_of
from kaflow_engine.connectors.kafka.output.rows import decode_rows
from kaflow_engine.connectors.kafka.source import TopicSource
from kaflow_engine.errors import SourceError
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config


def newest_partitions(table: str) -> list[str]:
    """Return the last two partitions of a table: what is over, and what still grows.

    Fewer where there are fewer, or no table yet.
    """
    return sorted(partition_rows(Path(table)))[-2:]


def table_rows(table: str, partitions: Sequence[str]) -> pa.Table:
    """Return the rows of some partitions of a table.

    Raises:
        SinkError: There is no such table.
    """
    return read_partitions(Path(table), partitions)


def topic_rows(
    config: Config,
    topic: str,
    form: str,
    columns: Sequence[Column],
    since: int,
    cluster: str = "",
) -> pa.Table:
    """Return the committed rows of an output topic.

    Args:
        config: Where it is.
        topic: Its name.
        form: The format of its values.
        columns: Of its rows.
        since: Epoch milliseconds; rows with an earlier Kafka timestamp are left out.
        cluster: Where the topic is.

    Raises:
        SourceError: It cannot be read, or holds something that is no row.
    """
    source = TopicSource(cluster_of(config.kafka, cluster), topic)
    values = source.read(source.start(since), source.latest())["value"].drop_null()
    decoded = decode_rows(config, topic, form, columns, values, cluster)
    if decoded.bad:
        raise SourceError(
            f"topic '{topic}' contains a record that cannot be decoded: {decoded.bad[0].message}"
        )
    return decoded.table

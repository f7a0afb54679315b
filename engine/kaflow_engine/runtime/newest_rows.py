"""The newest rows that a pipeline has written, for whoever shows them; read beside its run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_never

import pyarrow as pa

from kaflow_engine.connectors.delta.newest import newest_table_rows
from kaflow_engine.connectors.kafka.clusters.input_topics import cluster_of
from kaflow_engine.connectors.kafka.dead_letters.letters import letters_of
from kaflow_engine.connectors.kafka.output.rows import decode_rows
from kaflow_engine.connectors.kafka.read import Tail, tail
from kaflow_engine.connectors.local.letters import local_letters
from kaflow_engine.flow.flow import Flow, instant
from kaflow_engine.flow.graph import columns_of
from kaflow_engine.flow.sinks import ConnectorSink, Sink, TableSink, TopicSink
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.sink.bookkeeping import local_folder

_TIMEOUT = 10_000
"""Milliseconds for each answer: rows that come late are of no use."""
_MOST_BYTES = 4 * 1024 * 1024
_SHOWN_OF_LETTERS = ("topic", "partition", "offset", "phase", "error", "message", "value")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestRows:
    """The end of an output."""

    rows: tuple[Mapping[str, Any], ...]
    """Newest first; of a topic, each with `_partition`, `_offset` and `_time`."""
    offsets: Mapping[int, int] | None = None
    """Of a topic: partition to the offset behind its last committed record."""
    version: int | None = None
    """Of a table."""


def newest_rows(plan: Flow, sink: Sink, config: Config, limit: int) -> NewestRows:
    """Return the newest rows of a topic or table of a pipeline; what is no row of it is left out.

    It reads at most a few megabytes, and waits ten seconds for each answer.

    Args:
        plan: Of the pipeline.
        sink: Which of its sinks.
        config: Where the topic is.
        limit: Rows.

    Raises:
        SourceError: It cannot be read.
    """
    match sink:
        case TableSink(table=table):
            found = newest_table_rows(Path(table.path), limit, _MOST_BYTES)
            return NewestRows(rows=found.rows, version=found.version)
        case ConnectorSink():
            return NewestRows(rows=())
        case TopicSink():
            return _newest_records(plan, sink, config, limit)
        case _:
            assert_never(sink)


def _newest_records(plan: Flow, sink: TopicSink, config: Config, limit: int) -> NewestRows:
    end = _tail(config, sink.topic, limit, sink.cluster)
    records = end.records.filter(end.records["value"].is_valid())
    columns = columns_of(plan, sink)
    values = records["value"]
    decoded = decode_rows(config, sink.topic, sink.format, columns, values, sink.cluster)
    rows = zip(_places(records.take(decoded.good)), decoded.table.to_pylist(), strict=True)
    newest = tuple({**place, **row} for place, row in rows)[::-1]
    return NewestRows(rows=newest, offsets=end.ends)


def newest_letters(plan: Flow, config: Config, limit: int) -> NewestRows:
    """Return the newest dead letters of a pipeline.

    Raises:
        SourceError: Their topic cannot be read.
        StateError: Their files cannot be read.
    """
    ends = None
    if isinstance(plan.letters, ConnectorSink):
        return NewestRows(rows=())
    if plan.dead_letter_topic is None or plan.letters is not None:
        found = local_letters(local_folder(config, plan.pipeline))[-limit:]
    else:
        end = _tail(config, plan.dead_letter_topic, limit, plan.cluster)
        found, ends = letters_of(end.records), end.ends
    letters = [letter.data() for letter in found]
    rows = tuple({name: each[name] for name in ("letter", *_SHOWN_OF_LETTERS)} for each in letters)
    return NewestRows(rows=rows[::-1], offsets=ends)


def _tail(config: Config, topic: str, limit: int, cluster: str) -> Tail:
    return tail(cluster_of(config.kafka, cluster), topic, limit, _TIMEOUT, _MOST_BYTES)


def _places(records: pa.Table) -> list[dict[str, Any]]:
    return [
        {"_partition": at["partition"], "_offset": at["offset"], "_time": instant(at["timestamp"])}
        for at in records.select(["partition", "offset", "timestamp"]).to_pylist()
    ]

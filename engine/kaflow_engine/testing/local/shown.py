"""Shows what sinks that take columns would get as records, so that rows can be read."""

from typing import assert_never

from kaflow_engine.flow.sinks import ConnectorSink, Sink, TableSink, TopicSink


def as_topic(sink: Sink) -> TopicSink:
    """Return a sink that gets the same rows as records, those of columns as JSON."""
    match sink:
        case TopicSink():
            return sink
        case TableSink(id=name, inputs=inputs, exchange=exchange, key=key):
            return TopicSink(
                id=name,
                inputs=inputs,
                exchange=exchange,
                key=key,
                topic=sink.target,
                format="json",
                key_in_value=not sink.table.grouped,
            )
        case ConnectorSink(id=name, inputs=inputs, exchange=exchange, key=key):
            return TopicSink(
                id=name,
                inputs=inputs,
                exchange=exchange,
                key=key,
                topic=sink.target,
                format="json",
                key_in_value=sink.key_in_value,
                compacted=sink.changes,
                coalesced=sink.coalesced,
            )
        case _:
            assert_never(sink)

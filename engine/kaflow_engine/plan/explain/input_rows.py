"""What stands in the box of a topic, or of another source."""

from kaflow_engine.model.durations import format_duration
from kaflow_engine.plan.explain.rows import NOT_KNOWN, Rows, columns_text
from kaflow_engine.plan.explain.topic_part import TopicPart
from kaflow_engine.plan.explain.topics import source_rows

ON_DATA_LOSS = {
    "continue": "records that are gone before they were read are counted and passed over",
}
ON_SCHEMA_CHANGE = {
    "fail": "another schema of the registry stops the pipeline",
    "add_nullable": "new columns are taken up at the next start",
}
ON_ERROR = {
    "dead_letter": "a bad record becomes a dead letter",
    "skip": "a bad record is skipped and counted",
    "fail": "a bad record stops the pipeline",
}


def topic_rows(topic: TopicPart) -> Rows:
    """How a topic is read."""
    yield "role", ", ".join(topic.roles)
    if topic.source is not None:
        yield from source_rows(topic.source)
    else:
        if topic.place is not None:
            yield "topic", topic.place
        yield "format", topic.format
    if topic.looked_up:
        yield "columns", columns_text(topic.columns)
        return
    if topic.keys is not None:
        yield "keys", topic.keys
    if topic.history is not None:
        yield "history", f"{topic.history}, then the topic from where it ends"
    if topic.roles == ("table",):
        pass  # its tables say it
    elif topic.ttl is None:
        yield "kept", "for ever: the last record of each key"
    else:
        yield "kept", f"{format_duration(topic.ttl)} ({topic.ttl_from})"
    if topic.lookup == "as_of":
        kept = "for ever" if topic.keep is None else format_duration(topic.keep)
        yield "lookup", f"the version of the event's time; versions are kept {kept}"
    elif topic.lookup == "current":
        yield "lookup", "the value at the time of processing"
    yield "time", _time(topic, topic.event_time)
    for column, readings in topic.other_times:
        yield "", f"{_time(topic, column)}, as {' and '.join(readings)}"
    if topic.roles not in (("dimension",), ("table",)):
        yield (
            "watermark",
            f"the greatest time minus {format_duration(topic.lateness)}; a partition without "
            f"records for {format_duration(topic.idle_timeout)} does not hold it back",
        )
    future = format_duration(topic.max_future)
    yield "errors", f"{ON_ERROR[topic.on_error]}; so is a time {future} ahead"
    if topic.on_data_loss in ON_DATA_LOSS:
        yield "losses", ON_DATA_LOSS[topic.on_data_loss]
    if topic.on_schema_change in ON_SCHEMA_CHANGE:
        yield "schemas", ON_SCHEMA_CHANGE[topic.on_schema_change]
    if topic.source is None:
        yield "nulls", topic.tombstones or NOT_KNOWN
    yield "columns", columns_text(topic.columns)


def _time(topic: TopicPart, column: str | None) -> str:
    own = "Kafka timestamp" if topic.source is None else topic.source.record_time
    return f"column {column}" if column else own

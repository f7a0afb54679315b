"""What the settings of a processor say of the topics that it writes, as keys of outputs."""

from collections.abc import Iterable, Iterator

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.files.tree import Entries, Entry
from kaflow_engine.model.lenses.lowering.settings import (
    AVRO_KEY_NAME,
    AVRO_NAME,
    AVRO_NAMES,
    COUNTS,
    Settings,
)
from kaflow_engine.model.lenses.lowering.tree import entry
from kaflow_engine.model.outputs.output_specs import KeySchemaSpec, SchemaSpec


def topic_entries(
    settings: Settings, topic: str, form: str, of_keys: str | None, at: Location
) -> Iterator[Entry]:
    """Yield what is set of an output topic.

    Args:
        settings: Of the processor.
        topic: The topic.
        form: The format of its values.
        of_keys: The format of its keys; None: as the query makes them.
        at: Where the topic stands in the processor.
    """
    said = settings.of_topic(topic)
    for key, names, default, of in (
        ("schema", AVRO_NAME, SchemaSpec().name, form),
        ("key_schema", AVRO_KEY_NAME, KeySchemaSpec().name, of_keys),
    ):
        record, namespace = (said.get(name) for name in names)
        if of == "avro" and (record or namespace):
            parts = (namespace.value if namespace else "", record.value if record else default)
            yield entry(key, {"name": ".".join(part for part in parts if part)}, at)
    own = {key: each for key, each in said.items() if key not in AVRO_NAMES}
    if not own:
        return
    counts = [entry(COUNTS[k], int(each.value), each.at) for k, each in own.items() if k in COUNTS]
    config = [entry(key, each.value, each.at) for key, each in own.items() if key not in COUNTS]
    if config:
        of_config = Entries(at=at, entries=tuple(config))
        counts.append(Entry(key="config", at=at, value=of_config))
    yield Entry(key="new_topic", at=at, value=Entries(at=at, entries=tuple(counts)))


def topics_that_are_not_written(settings: Settings, written: Iterable[str]) -> Iterator[ModelError]:
    """Yield settings of single topics that the processor does not write."""
    topics = frozenset(written)
    for each in settings.topics:
        if each.topic is not None and each.topic not in topics:
            yield UnknownName("output topic", each.topic, topics, each.at)

"""The dead letters in a topic."""

from collections.abc import Collection

import pyarrow as pa

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.connectors.letters import Letter, letter_of


def read_letters(
    settings: KafkaSettings, topic: str, pipeline: str, redriven: Collection[str]
) -> list[Letter]:
    """Return the dead letters of a pipeline, oldest first.

    Args:
        settings: How to reach the brokers.
        topic: The topic of dead letters, which others may share.
        pipeline: Name of the pipeline.
        redriven: Places of those that were tried again.

    Raises:
        SourceError: The topic cannot be read.
    """
    found = letters_of(read_all(settings, topic), redriven)
    mine = [letter for letter in found if letter.pipeline == pipeline]
    return sorted(mine, key=lambda letter: (letter.timestamp or 0, letter.topic, letter.offset))


def letters_of(records: pa.Table, redriven: Collection[str] = ()) -> list[Letter]:
    """Return the dead letters among records of a topic, in their order.

    Args:
        records: As `kafka_read` returns them.
        redriven: Places of those that were tried again.
    """
    found = (
        letter_of(f"{row['partition']}:{row['offset']}", row, redriven)
        for row in records.to_pylist()
    )
    return [letter for letter in found if letter is not None]

"""Puts dead letters through their pipeline again, each once."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# pyarrow is untyped

import json
import time
from collections.abc import Callable, Iterator, Sequence

from confluent_kafka import KafkaException, Producer

from kaflow_engine.connectors.kafka_admin import create_topic, describe
from kaflow_engine.connectors.kafka_client import Client, KafkaSettings
from kaflow_engine.connectors.kafka_read import read_all
from kaflow_engine.connectors.kafka_transactions import (
    Receipts,
    abort,
    open_transactional,
    transactional_id,
)
from kaflow_engine.connectors.letters import Letter, chosen, read_letters
from kaflow_engine.model.letters import REDRIVE, redrive_mark

TIMEOUT = 30_000
_AT_ONCE = 1_000
"""Letters of one transaction."""


def redriven_topic(letters_topic: str) -> str:
    """Return the name of the compacted topic that says which dead letters were tried again."""
    return f"{letters_topic}.redriven"


def redriven_letters(settings: KafkaSettings, letters_topic: str) -> frozenset[str]:
    """Return the places of the dead letters that were tried again."""
    topic = redriven_topic(letters_topic)
    if not describe(settings, [topic])[topic].exists:
        return frozenset()
    return frozenset(key.decode() for key in read_all(settings, topic).column("key").to_pylist())


def find_letters(settings: KafkaSettings, topic: str, pipeline: str) -> list[Letter]:
    """Return the dead letters of a pipeline, with what became of them since.

    Raises:
        SourceError: The topic does not exist or cannot be read.
    """
    return read_letters(settings, topic, pipeline, redriven_letters(settings, topic))


def can_redrive(letter: Letter) -> bool:
    """Tell whether a dead letter is to be tried again: not twice, and not one of a backfill, whose
    record the stream has read, too.
    """
    return not letter.redriven and letter.backfill is None


def redrive(
    settings: KafkaSettings,
    topic: str,
    pipeline: str,
    pipeline_id: str,
    where: str | None,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> list[Letter]:
    """Send the records of dead letters to their topics again, as if they came now.

    Each record keeps its bytes and its partition, and gets the header `kaflow.redrive`, by which
    other pipelines of the topic know that it is not for them. A transaction writes records and the
    note that they were sent, so a redrive that is interrupted goes on where it was.

    Args:
        settings: How to reach the brokers.
        topic: The topic of dead letters.
        pipeline: Name of the pipeline.
        pipeline_id: Its id.
        where: SQL over the columns of letters; None: all.
        told: Hears how many of how many were sent.

    Returns:
        The letters that were sent.

    Raises:
        ModelError: The condition cannot be read.
        SourceError: The topic cannot be read.
        SinkError: A broker refuses, or another redrive of the pipeline has begun.
    """
    notes = redriven_topic(topic)
    create_topic(settings, notes, 1, {"cleanup.policy": "compact"})
    name = transactional_id(pipeline_id, "redrive")
    # a redrive that still runs is fenced before the notes are read
    client = open_transactional(settings, name, settings.transaction_timeout, TIMEOUT)
    wanted = [
        letter
        for letter in chosen(find_letters(settings, topic, pipeline), where)
        if can_redrive(letter)
    ]
    done = 0
    for some in _batches(wanted):
        _send(client, notes, some, pipeline_id)
        done += len(some)
        told(done, len(wanted))
    return wanted


def _batches(letters: Sequence[Letter]) -> Iterator[Sequence[Letter]]:
    for start in range(0, len(letters), _AT_ONCE):
        yield letters[start : start + _AT_ONCE]


def _send(
    client: Client[Producer], notes: str, letters: Sequence[Letter], pipeline_id: str
) -> None:
    receipts, now = Receipts(), int(time.time() * 1000)
    try:
        client.api.begin_transaction()
        for letter in letters:
            mark = (REDRIVE, redrive_mark(letter.attempt + 1, pipeline_id))
            own = [header for header in letter.headers if header[0] != REDRIVE]
            client.api.produce(
                letter.topic,
                letter.value,
                letter.key,
                letter.partition,
                on_delivery=receipts,
                headers=[*own, mark],
            )
            note = json.dumps({"at": now, "topic": letter.topic})
            client.api.produce(notes, note, letter.letter, 0, on_delivery=receipts)
            client.api.poll(0)
        client.api.commit_transaction(TIMEOUT / 1000)
    except KafkaException as failure:
        error = client.trouble(receipts.error or failure, "redriving dead letters", TIMEOUT)
        abort(client, TIMEOUT)
        raise error.as_sink() from failure

"""Puts dead letters through their pipeline again, each once."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException, Producer

from kaflow_engine.connectors.kafka.admin import describe, offsets, require
from kaflow_engine.connectors.kafka.client import Client, KafkaSettings
from kaflow_engine.connectors.kafka.dead_letters.letters import read_letters
from kaflow_engine.connectors.kafka.replication import Replication, create_kept
from kaflow_engine.connectors.kafka.run_log.transactions import (
    ControlReader,
    Receipts,
    abort,
    open_transactional,
    transactional_id,
)
from kaflow_engine.connectors.kafka.topics import topic_ids, topic_settings
from kaflow_engine.connectors.letters import Letter, chosen
from kaflow_engine.errors import StateError
from kaflow_engine.model.letters import CHAIN, FROM, REDRIVE, redrive_mark

TIMEOUT = 30_000
PATIENCE = 3 * TIMEOUT
"""Milliseconds: the brokers abort what a redrive has left open after `2 * TIMEOUT`, and look for it
every ten seconds."""
_AT_ONCE = 1_000
"""Letters of one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The partition that a record came from, and is sent to."""

    cluster: str
    topic: str
    partition: int


def redriven_topic(letters_topic: str) -> str:
    """Return the name of the compacted topic that says which dead letters were tried again."""
    return f"{letters_topic}.redriven"


def note_key(letter: str, letters_topic_id: str) -> str:
    """Return the key of the note that a letter was tried again.

    A topic that is deleted and created again holds other letters in the same places.
    """
    return f"{letter}@{letters_topic_id}"


def redriven_letters(
    settings: KafkaSettings, letters_topic: str, patience: int = PATIENCE
) -> frozenset[str]:
    """Return the places of the dead letters that were tried again.

    Pipelines may share the topic of notes, and what one of them holds open there hides what others
    have committed behind it. So its end is that of all records, and open transactions are waited
    for.

    Args:
        settings: How to reach the brokers.
        letters_topic: The topic of dead letters.
        patience: Milliseconds to wait for open transactions.

    Raises:
        SourceError: The topic of notes cannot be read.
        StateError: A transaction stays open.
    """
    require(settings, [letters_topic])
    topic, known_as = redriven_topic(letters_topic), letters_id(settings, letters_topic)
    return redriven_notes(settings, topic, known_as, patience)


def redriven_notes(
    settings: KafkaSettings, topic: str, known_as: str, patience: int = PATIENCE
) -> frozenset[str]:
    """Return the places of the dead letters whose records were sent to topics of a cluster again.

    Args:
        settings: How to reach the brokers.
        topic: The one of notes; it may not be there.
        known_as: What tells the place where the letters are from others.
        patience: Milliseconds to wait for open transactions.

    Raises:
        SourceError: The topic of notes cannot be read.
        StateError: A transaction stays open.
    """
    if not describe(settings, [topic])[topic].exists:
        return frozenset()
    end = offsets(settings, {topic: 1}, "latest", committed=False)[topic][0]
    reader = ControlReader(settings, topic, patience, committed=True)
    try:
        keys = [key.decode() for key, _ in reader.read_on(end)]
    finally:
        reader.close()
    noted = [key.partition("@") for key in keys]
    # notes of earlier versions name no topic
    return frozenset(letter for letter, _, noted_id in noted if noted_id in ("", known_as))


def find_letters(
    settings: KafkaSettings, topic: str, pipeline: str, patience: int = PATIENCE
) -> list[Letter]:
    """Return the dead letters of a pipeline, with what became of them since.

    Raises:
        SourceError: The topic does not exist or cannot be read.
        StateError: Another redrive into the topic does not end.
    """
    return read_letters(settings, topic, pipeline, redriven_letters(settings, topic, patience))


def can_redrive(letter: Letter) -> bool:
    """Tell whether a dead letter can be tried again: not twice, not one of a backfill, whose
    record the stream has read, too, not one about a result, which has no record, and not one of a
    source that is no topic, to which nothing can be sent.
    """
    if any(name == FROM for name, _ in letter.headers):
        return False
    return not letter.redriven and letter.backfill is None and letter.offset >= 0


def redrive(
    settings: KafkaSettings,
    topic: str,
    pipeline: str,
    pipeline_id: str,
    where: str | None,
    on_progress: Callable[[int, int], None] = lambda done, of: None,
    patience: int = PATIENCE,
) -> list[Letter]:
    """Send the records of dead letters to their topics again, as if they came now.

    Each record keeps its bytes and its partition, and gets the header `kaflow.redrive`, by which
    other pipelines of the topic know that it is not for them. Where the letter is about one of
    several chains, `kaflow.chain` tells the others the same. A transaction writes records and the
    note that they were sent, so a redrive that is interrupted goes on where it was.

    Args:
        settings: How to reach the brokers.
        topic: The topic of dead letters.
        pipeline: Name of the pipeline.
        pipeline_id: Its id.
        where: SQL over the columns of letters; None: all.
        on_progress: Hears how many of how many were sent.
        patience: Milliseconds to wait for what other pipelines are redriving.

    Returns:
        The letters that were sent.

    Raises:
        ModelError: The condition cannot be read.
        SourceError: The topic cannot be read.
        SinkError: A broker refuses, or another redrive of the pipeline has begun.
        StateError: The topic of notes would forget some, or another redrive into it does not end.
    """

    def wanted() -> list[tuple[Letter, Place]]:
        found = chosen(find_letters(settings, topic, pipeline, patience), where)
        return [
            (letter, Place(cluster="", topic=letter.topic, partition=letter.partition))
            for letter in found
            if can_redrive(letter)
        ]

    notes, known_as = redriven_topic(topic), letters_id(settings, topic)
    return send_again(settings, notes, known_as, pipeline_id, wanted, on_progress)


def send_again(
    settings: KafkaSettings,
    notes: str,
    known_as: str,
    pipeline_id: str,
    wanted: Callable[[], Sequence[tuple[Letter, Place]]],
    on_progress: Callable[[int, int], None] = lambda done, of: None,
) -> list[Letter]:
    """Send records to topics of one cluster, which notes it in the same transactions.

    Args:
        settings: How to reach the brokers.
        notes: The topic of notes.
        known_as: What tells the place where the letters are from others.
        pipeline_id: Of the pipeline.
        wanted: Says which letters, and where their records go, once no other redrive runs.
        on_progress: Hears how many of how many were sent.

    Returns:
        The letters.

    Raises:
        SinkError: A broker refuses, or another redrive of the pipeline has begun.
        StateError: The topic of notes would forget some.
    """
    if not create_kept(settings, notes, {"cleanup.policy": "compact"}, Replication()):
        _refuse_other_policy(settings, notes)
    name = transactional_id(pipeline_id, "redrive")
    # a redrive that still runs is fenced before the notes are read
    client = open_transactional(settings, name, settings.transaction_timeout, TIMEOUT)
    letters, done = list(wanted()), 0
    for start in range(0, len(letters), _AT_ONCE):
        some = letters[start : start + _AT_ONCE]
        _send(client, notes, some, pipeline_id, known_as)
        done += len(some)
        on_progress(done, len(letters))
    return [letter for letter, _ in letters]


def letters_id(settings: KafkaSettings, topic: str) -> str:
    """Return what tells a topic from others that have its name before or after it."""
    return topic_ids(settings, [topic]).get(topic, "")


def _refuse_other_policy(settings: KafkaSettings, notes: str) -> None:
    """Refuse a topic of notes that would forget some.

    Raises:
        StateError: Its cleanup.policy is another one than `compact`.
    """
    policy = topic_settings(settings, notes).get("cleanup.policy")
    if policy is not None and policy != "compact":
        raise StateError(
            f"topic '{notes}' has cleanup.policy '{policy}' and would forget which dead letters "
            "were redriven",
            hint="set its cleanup.policy to 'compact'",
        )


def _send(
    client: Client[Producer],
    notes: str,
    letters: Sequence[tuple[Letter, Place]],
    pipeline_id: str,
    known_as: str,
) -> None:
    receipts, now = Receipts(), int(time.time() * 1000)
    try:
        client.api.begin_transaction()
        for letter, place in letters:
            client.api.produce(
                place.topic,
                letter.value,
                letter.key,
                place.partition,
                on_delivery=receipts,
                headers=redriven_headers(letter, pipeline_id),
            )
            note = json.dumps({"at": now, "topic": place.topic})
            key = note_key(letter.letter, known_as)
            client.api.produce(notes, note, key, 0, on_delivery=receipts)
            client.api.poll(0)
        client.api.commit_transaction(TIMEOUT / 1000)
    except KafkaException as failure:
        error = client.trouble(receipts.error or failure, "redriving dead letters", TIMEOUT)
        abort(client, TIMEOUT)
        raise error.as_sink() from failure


def redriven_headers(letter: Letter, pipeline_id: str) -> list[tuple[str, str | bytes | None]]:
    """Return the headers of a record, with those that say for whom it is sent again."""
    marks = [(REDRIVE, redrive_mark(letter.attempt + 1, pipeline_id))]
    if letter.chain is not None:
        marks.append((CHAIN, letter.chain.encode()))
    return [*(each for each in letter.headers if each[0] not in (REDRIVE, CHAIN)), *marks]

"""Sends sample records to the topics that pipelines read, until someone wants it to end."""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import takewhile
from threading import Event, Thread

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.errors import KaflowError, ModelError
from kaflow_engine.model.files.yaml_file import raise_as_found
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.kafka_topics import kafka_topics
from kaflow_engine.testing.sample.endless import WINDOW, Endless, endless_records
from kaflow_engine.testing.sample.fake import TOPICS
from kaflow_engine.testing.sample.fake_stream import FakeRecord
from kaflow_engine.testing.sample.feed import send

_DAY = 86_400_000


class Feed:
    """Sends sample records from a thread of its own."""

    def __init__(
        self, kafka: KafkaSettings, topics: Sequence[str], rate: float, yesterday: bool = False
    ) -> None:
        """Prepare to send.

        Args:
            kafka: How to reach the brokers.
            topics: Which ones.
            rate: Records per second.
            yesterday: Begin with a minute of the day before, all at once.
        """
        self.sent = 0
        self.error: KaflowError | None = None
        self._kafka, self._topics, self._rate = kafka, topics, rate
        self._yesterday = yesterday
        self._ended = Event()

    @contextmanager
    def running(self) -> Generator[None]:
        """Send while the block runs."""
        thread = Thread(target=self._send, name="kaflow-feed", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.stop()
            thread.join(30)

    def stop(self) -> None:
        """Send no more."""
        self._ended.set()

    def check(self) -> None:
        """Raise what ended the feed before its time."""
        if self.error is not None:
            raise self.error

    def _send(self) -> None:
        start = time.time_ns() // 1_000_000
        stream = Endless(topics=self._topics, start=start, rate=self._rate)

        def count(sent: int) -> None:
            self.sent = sent

        try:
            if self._yesterday:
                past = replace(stream, start=start - _DAY)
                send(self._kafka, takewhile(_in_a_minute(past), endless_records(past)))
            records = endless_records(stream)
            send(self._kafka, records, since=start, stopped=self._ended.is_set, progress=count)
        except KaflowError as error:
            self.error = error


def _in_a_minute(stream: Endless) -> Callable[[FakeRecord], bool]:
    return lambda record: record.timestamp < stream.start + WINDOW


def sample_topics(specs: Sequence[PipelineSpec]) -> list[str]:
    """Return the topics that sample records are sent to: those that no pipeline writes.

    Raises:
        ModelError: There are no sample records for one of them.
        Problems: For several.
    """
    written = {write.output.topic for spec in specs for write in spec.writes}
    read = {topic for spec in specs for topic in kafka_topics(spec)}
    topics = sorted(read - written)
    # an unknown one is noticed before anything starts
    raise_as_found([_no_sample(specs, topic) for topic in topics if topic not in TOPICS])
    return topics


def _no_sample(specs: Sequence[PipelineSpec], topic: str) -> ModelError:
    reads = (spec for spec in specs if topic in kafka_topics(spec))
    return ModelError(
        f"there are no sample records for topic '{topic}'",
        next((spec.place("query") for spec in reads), None),
        f"the demo knows {', '.join(TOPICS)}; `kaflow run` reads topics of your own",
    )

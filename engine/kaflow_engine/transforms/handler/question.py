"""Some rows in one request: asked, and asked in halves where the service does not want all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import Event
from typing import NamedTuple

from kaflow_engine.connectors.http.asking import OnAnswer, ask
from kaflow_engine.connectors.http.client import Endpoint, NotTaken
from kaflow_engine.connectors.http.errors import HttpAway
from kaflow_engine.flow.transforms import HandlerParams
from kaflow_engine.transforms.handler.response import WrongAnswer, texts_of_answer


@dataclass(frozen=True, slots=True)
class Question:
    """Rows that are sent together."""

    rows: Sequence[bytes]
    """The JSON of each, in its envelope."""
    keys: Sequence[str]
    """What tells each from all others."""


class Answered(NamedTuple):
    """What a service says of a row: JSON text, or why there is none."""

    answer: str | None
    error: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """Who is asked, and how."""

    endpoint: Endpoint
    params: HandlerParams
    about: str
    """Tells its requests from those of other batches."""
    on_answer: OnAnswer
    """Called for each request."""

    def answers(self, question: Question, stop: Event) -> Iterator[Answered]:
        """Yield what the service says of each row, in their order.

        What is wrong with an answer about several rows is found out by asking about each half of
        them, so that it concerns no more rows than it has to.

        Raises:
            HttpAway: It does not answer, or not in time, or no answer is needed any more.
            HttpUnfit: The address or the login is not what it wants.
        """
        found = self._answered(question, stop)
        if not isinstance(found, NotTaken):
            yield from map(Answered, found)
        elif len(question.rows) == 1:
            yield Answered(None, found.error, found.message)
        else:
            middle = len(question.rows) // 2
            for half in (slice(None, middle), slice(middle, None)):
                if stop.is_set():
                    raise HttpAway(f"{self.endpoint.title} was not asked about each row")
                yield from self.answers(Question(question.rows[half], question.keys[half]), stop)

    def _answered(self, question: Question, stop: Event) -> list[str] | NotTaken:
        params = self.params
        rows = question.rows
        found = ask(
            self.endpoint,
            rows[0] if params.batch is None else b"[" + b",".join(rows) + b"]",
            _key(self.about, question.keys),
            patience=params.retry_for / 1000,
            stop=stop,
            connections=params.concurrency,
            on_answer=self.on_answer,
        )
        if isinstance(found, NotTaken):
            return found
        try:
            return texts_of_answer(
                found,
                rows=None if params.batch is None else len(rows),
                member="data" if params.envelope == "metadata" else None,
            )
        except WrongAnswer as error:
            return NotTaken("WrongAnswer", str(error))


def _key(about: str, keys: Sequence[str]) -> str:
    return sha256("\n".join([about, *keys]).encode()).hexdigest()[:32]

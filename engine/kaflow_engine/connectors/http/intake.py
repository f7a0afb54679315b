"""Writes messages of many senders down together, and tells each when its own is safe."""

import asyncio
import time
from dataclasses import dataclass, field

from kaflow_engine.connectors.journal.journal import Journal, Message


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a message."""

    offset: int | None
    """None: it had been sent before."""


@dataclass
class Intake:
    """The messages of one journal that wait to be written; all calls are of one event loop.

    While some are written, others gather: under load one sync of the disk serves many.
    """

    journal: Journal
    _waiting: list[tuple[Message, asyncio.Future[Taken]]] = field(
        default_factory=list[tuple[Message, asyncio.Future[Taken]]]
    )
    _by_key: dict[str, asyncio.Future[Taken]] = field(
        default_factory=dict[str, asyncio.Future[Taken]]
    )
    _writer: asyncio.Task[None] | None = None

    @property
    def backlog(self) -> int:
        """Records that wait for the pipeline, and messages that are not written yet."""
        return self.journal.backlog + len(self._waiting)

    async def take(self, message: Message) -> Taken:
        """Return when a message survives a power cut.

        Raises:
            StateError: It could not be written down.
        """
        if message.key is not None:
            if (same := self._by_key.get(message.key)) is not None:
                await asyncio.shield(same)
                return Taken(None)
            if self.journal.knows(message.key, _now()):
                return Taken(None)
        done: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, done))
        if message.key is not None:
            self._by_key[message.key] = done
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return await asyncio.shield(done)

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            some, self._waiting = self._waiting, []
            messages = [message for message, _ in some]
            try:
                first = await loop.run_in_executor(None, self.journal.append, messages, _now())
            except Exception as error:
                for _, done in some:
                    done.set_exception(error)
                    done.exception()  # whoever sent it may be gone
            else:
                for place, (_, done) in enumerate(some):
                    done.set_result(Taken(first + place))
            for message in messages:
                if message.key is not None:
                    del self._by_key[message.key]


def _now() -> int:
    return round(time.time() * 1000)

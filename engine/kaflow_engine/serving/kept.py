"""Answers that are kept for a while, and are made once for all who ask at the same time.

All of it runs in one event loop, so that nothing is locked.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from kaflow_engine.serving.sessions import Result

Outcome = Literal["miss", "hit", "shared"]
Key = tuple[object, ...]
_PART = 4
"""An answer that is larger than this part of all is not kept: it would push out the others."""


@dataclass(frozen=True, slots=True)
class _Kept:
    result: Result
    made: float
    until: float

    @property
    def size(self) -> int:
        return len(self.result.rows) + sum(len(n) + len(kind) for n, kind in self.result.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An answer, and where it comes from."""

    result: Result
    outcome: Outcome
    age_s: float = 0.0


@dataclass(slots=True)
class Keeper:
    """Keeps answers, those that were asked for last, within so many bytes."""

    most_bytes: int
    now: Callable[[], float]
    """Seconds of a clock that only goes forward."""
    size: int = 0
    evicted: int = 0
    """How many had to leave for others."""
    _kept: OrderedDict[Key, _Kept] = field(default_factory=OrderedDict[Key, _Kept])
    _made: dict[Key, asyncio.Task[Result]] = field(default_factory=dict[Key, asyncio.Task[Result]])

    def __len__(self) -> int:
        return len(self._kept)

    async def answer(self, key: Key, ttl_s: float, make: Callable[[], Awaitable[Result]]) -> Given:
        """Return the answer for a key: kept, or being made, or made now.

        What is made goes on where its caller leaves, and is kept; an error is not.

        Args:
            key: What is asked.
            ttl_s: How long its answer counts.
            make: Makes it.
        """
        kept = self._kept.get(key)
        if kept is not None and kept.until > self.now():
            self._kept.move_to_end(key)
            return Given(result=kept.result, outcome="hit", age_s=self.now() - kept.made)
        if kept is not None:
            self._drop(key)
        running = self._made.get(key)
        if running is not None:
            return Given(result=await asyncio.shield(running), outcome="shared")
        task = asyncio.ensure_future(self._make(key, ttl_s, make))
        task.add_done_callback(_looked_at)  # it may fail when no one waits any more
        self._made[key] = task
        return Given(result=await asyncio.shield(task), outcome="miss")

    async def _make(self, key: Key, ttl_s: float, make: Callable[[], Awaitable[Result]]) -> Result:
        try:
            result = await make()
        finally:
            del self._made[key]
        kept = _Kept(result, self.now(), self.now() + ttl_s)
        if kept.size * _PART <= self.most_bytes:
            self._kept[key] = kept
            self.size += kept.size
            while self.size > self.most_bytes:
                self._drop(next(iter(self._kept)))
                self.evicted += 1
        return result

    def _drop(self, key: Key) -> None:
        self.size -= self._kept.pop(key).size


def _looked_at(task: asyncio.Task[Result]) -> None:
    if not task.cancelled():
        task.exception()

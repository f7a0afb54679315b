"""Sessions that requests take in turn: each answer within its time, or none."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kaflow_engine.serving.sessions import Late, Prepared, Result, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Rows, and what they cost."""

    result: Result
    waited_s: float
    took_s: float


class Pool:
    """Some sessions, each with a thread; it belongs to one event loop."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._sessions = tuple(sessions)
        self._free: asyncio.Queue[Session] = asyncio.Queue()
        for session in sessions:
            self._free.put_nowait(session)
        self._threads = ThreadPoolExecutor(len(self._sessions), thread_name_prefix="kaflow-serve")

    @property
    def at_work(self) -> int:
        """How many sessions answer now."""
        return len(self._sessions) - self._free.qsize()

    async def run(
        self, prepared: Prepared, values: Mapping[str, object], most_rows: int, timeout_s: float
    ) -> Answered:
        """Run a statement when a session is free.

        Raises:
            Late: It took longer than it may, with what it waited.
            SourceError: A table cannot be read.
            RunError: Its SQL fails.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            session = await asyncio.wait_for(self._free.get(), timeout_s)
        except TimeoutError:
            raise Late from None
        waited = loop.time() - began
        work = loop.run_in_executor(self._threads, session.run, prepared, values, most_rows)

        def done(work: asyncio.Future[Result]) -> None:
            # It is free now, and not when who asked has left.
            self._free.put_nowait(session)
            work.exception()

        work.add_done_callback(done)
        stop = loop.call_later(max(timeout_s - waited, 0), session.stop)
        try:
            result = await asyncio.shield(work)
        finally:
            if work.done():
                stop.cancel()
        return Answered(result=result, waited_s=waited, took_s=loop.time() - began - waited)

    async def is_free(self, within_s: float) -> bool:
        """Tell whether a session is free within some time."""
        try:
            self._free.put_nowait(await asyncio.wait_for(self._free.get(), within_s))
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Stop what runs; its sessions are no longer used then."""
        for session in self._sessions:
            session.stop()
        self._threads.shutdown()

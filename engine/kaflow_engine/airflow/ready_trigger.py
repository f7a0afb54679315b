"""The trigger that asks the port of a stream until all its pipelines are running."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
from airflow.triggers.base import BaseTrigger, TriggerEvent

PATH = "/health/ready"
PATIENCE_S = 5.0
"""For one answer: the port gives it at once."""


class KaflowReadyTrigger(BaseTrigger):
    """Waits until a stream is ready, in the triggerer's process, where it costs no worker."""

    def __init__(self, url: str, poke_interval: float, until: float) -> None:
        """Take what to ask, and until when.

        Args:
            url: The address of the port.
            poke_interval: Seconds between two questions.
            until: Epoch seconds, so that a triggerer that takes over does not begin again.
        """
        super().__init__()
        self.url, self.poke_interval, self.until = url, poke_interval, until

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and what to make it again from."""
        return (
            "kaflow_engine.airflow.ready_trigger.KaflowReadyTrigger",
            {"url": self.url, "poke_interval": self.poke_interval, "until": self.until},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Give one event: `ready`, and what was answered last."""
        async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
            while True:
                ready, answer = await self._ask(client)
                left = self.until - time.time()
                if ready or left <= 0:
                    yield TriggerEvent({"ready": ready, "answer": answer})
                    return
                await asyncio.sleep(min(self.poke_interval, left))

    async def _ask(self, client: httpx.AsyncClient) -> tuple[bool, str]:
        try:
            return answer_of((await client.get(f"{self.url}{PATH}")).status_code)
        except httpx.HTTPError as error:
            return False, no_answer(error)


def answer_of(status: int) -> tuple[bool, str]:
    """Return whether a stream is ready that answers with this status, and what it means."""
    match status:
        case 200:
            return True, "all its pipelines are running"
        case 503:
            return False, "not all its pipelines are running"
        case _:
            return False, f"it answers {status} to {PATH}: is this the port of a stream?"


def no_answer(error: httpx.HTTPError) -> str:
    """Return what it means that nothing came back."""
    return f"it does not answer ({str(error) or type(error).__name__})"

"""Hooks are called alike, be they plain or `async`."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar
from weakref import finalize

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")

CONTRACT = 3
"""The version of the contracts of plugins that has hooks."""


class AnyOptions(BaseModel):
    """Options that no one checks: texts by name, as the author says them."""

    model_config = ConfigDict(extra="allow")


class Calls:
    """Calls the hooks of one object; those that are `async` share a loop, and what they open in
    it."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._closing: finalize[..., Calls] | None = None

    def __call__(self, hook: Callable[..., T | Awaitable[T]], *given: object) -> T:
        """Call a hook, and return what it returns in the end."""
        found = hook(*given)
        if not isawaitable(found):
            return found
        if self._runner is None:
            self._runner = asyncio.Runner()
            self._closing = finalize(self, self._runner.close)
        return self._runner.run(_awaited(found))

    def close(self) -> None:
        """End the loop, if there is one; it ends with this object, too."""
        if self._closing is not None:
            self._closing()


async def _awaited(found: Awaitable[T]) -> T:
    return await found

"""Hooks are called alike, be they plain or `async`, and fail alike."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from inspect import isawaitable
from typing import TypeVar
from weakref import finalize

from pydantic import BaseModel, ConfigDict

from kaflow_engine.errors import KaflowError, SinkAway, SinkUnfit

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


@contextmanager
def hook_errors(called: str, hook: str) -> Generator[None]:
    """Translate what a hook raises in the block.

    Raises:
        KaflowError: It has raised it.
        SinkAway: A connection broke, or it took too long: it may heal.
        SinkUnfit: It raised something else: someone must act.
    """
    try:
        yield
    except KaflowError:
        raise
    except (ConnectionError, TimeoutError) as error:
        raise SinkAway(f"{called}, {hook}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise SinkUnfit(
            f"{called} fails at '{hook}': {type(error).__name__}: {error}",
            hint="correct the plugin, or the 'options' that it gets; the batch runs again",
        ) from error

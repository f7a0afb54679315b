"""Requests whose answers are needed: one sent again and again, and many in flight at once."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event
from time import monotonic
from typing import Literal, TypeVar

from kaflow_engine.connectors.http.client import Endpoint, Later, NotTaken, post
from kaflow_engine.connectors.http.errors import HttpAway

Result = TypeVar("Result")

_FIRST_PAUSE = 0.1
_MOST_PAUSE = 30.0
_OK = 200


Outcome = Literal["taken", "refused", "retried"]

OnAnswer = Callable[[Outcome, int | None], None]
"""Takes what became of a request, and the status of its answer, None where there was none."""


def ask(
    endpoint: Endpoint,
    body: bytes,
    key: str,
    *,
    patience: float,
    stop: Event,
    connections: int,
    on_answer: OnAnswer = lambda outcome, status: None,
) -> bytes | NotTaken:
    """Send a body until the server answers it; return the answer, or why it does not take it.

    Pauses double, and are as long as the server asks for.

    Args:
        endpoint: Where to.
        body: JSON.
        key: What tells the receiver that it has this body already.
        patience: Seconds after which no other try begins.
        stop: Set where no answer is needed any more.
        connections: How many threads of this process send at once.
        on_answer: Called for each request.

    Raises:
        HttpAway: The server does not answer, or asks for more time than there is.
        HttpUnfit: It would answer so to every body.
    """
    until, pause = monotonic() + patience, _FIRST_PAUSE
    while True:
        try:
            found = post(endpoint, body, key, connections)
        except Later as later:
            on_answer("retried", later.status)
            wait = max(pause * random.uniform(0.5, 1), later.after)
            if monotonic() + wait > until or stop.wait(wait):
                raise HttpAway(
                    f"{endpoint.title} at {endpoint.server} {later}",
                    hint="look at the server's log; rows wait until it answers",
                ) from later
            pause = min(2 * pause, _MOST_PAUSE)
        else:
            if isinstance(found, NotTaken):
                on_answer("refused", found.status)
            else:
                on_answer("taken", _OK)
            return found


def in_flight(
    asks: Callable[[int, Event], Result], count: int, limit: int
) -> Iterator[tuple[int, Result]]:
    """Yield the result of each request by its number, as they come.

    Where one fails, no other begins, and its error is raised once those on their way have ended.

    Args:
        asks: Sends a request of a number; the event is set where it need not go on.
        count: How many requests there are.
        limit: How many are in flight at once, at most.
    """
    numbers = iter(range(count))
    results: SimpleQueue[tuple[int, Result] | BaseException | None] = SimpleQueue()
    stop = Event()

    def work() -> None:
        try:
            while not stop.is_set() and (number := next(numbers, None)) is not None:
                results.put((number, asks(number, stop)))
        except BaseException as error:
            results.put(error)  # in front of what others raise because of the stop
            stop.set()
        finally:
            results.put(None)

    threads = min(count, limit)
    failed: BaseException | None = None
    with ThreadPoolExecutor(max(threads, 1), thread_name_prefix="handler") as pool:
        for _ in range(threads):
            pool.submit(work)
        try:
            while threads:
                match results.get():
                    case None:
                        threads -= 1
                    case BaseException() as error:
                        failed = failed or error
                    case found:
                        yield found
        finally:
            stop.set()
    if failed is not None:
        raise failed

"""Signal handlers: Ctrl-C and SIGTERM set an event that long work looks at."""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from threading import Event


@contextmanager
def stop_requests() -> Generator[Event]:
    """Give an event that is set at the first Ctrl-C or SIGTERM; a second Ctrl-C interrupts."""
    asked = Event()

    def ask(number: int, frame: object) -> None:
        if asked.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.set()

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

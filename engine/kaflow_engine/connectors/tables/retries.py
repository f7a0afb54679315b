"""Trying again for a short while; what lasts longer, the run waits for."""

import time
from collections.abc import Callable
from typing import TypeVar

from kaflow_engine.errors import SinkAway

PAUSES = (0.1, 0.5, 2.0)
"""Seconds before each further try."""

T = TypeVar("T")


def with_retries(attempt: Callable[[], T]) -> T:
    """Return what an attempt returns that a sink answers.

    Raises:
        SinkAway: None of them was answered.
    """
    for pause in PAUSES:
        try:
            return attempt()
        except SinkAway:
            time.sleep(pause)
    return attempt()

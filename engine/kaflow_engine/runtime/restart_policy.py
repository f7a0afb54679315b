"""Restart policy: after how long a failed pipeline starts again, and when it gives up."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from kaflow_engine.errors import DrainIncomplete, KaflowError, causes_of
from kaflow_engine.masking import masked
from kaflow_engine.runtime.batch.progress import Watch
from kaflow_engine.runtime.batch.stop import Ending, Limits
from kaflow_engine.runtime.failures.failures import is_outage, is_retryable, to_error

LOGGER = logging.getLogger("kaflow.runtime")

MOST_FAILURES = 6
"""Failures in a row, without a batch committed between, after which a pipeline ends."""

_BACKOFF_S = 1.0
_MOST_BACKOFF_S = 30.0
_MOST_OUTAGE_BACKOFF_S = 5.0


@dataclass(kw_only=False)
class RestartPolicy:
    """Counts failures in a row; a batch that was committed resets the count.

    Outages are waited out up to a deadline, however many attempts that takes, even at the start;
    other failures only once the pipeline ran, and only a few times.
    """

    deadline: float
    """Seconds that an outage may last."""
    clock: Callable[[], float] = time.monotonic
    failures: int = 0
    _committed: int = -1
    _away_since: float | None = None
    _others: int = 0

    def after(self, failure: KaflowError, batches: int, state: str) -> float | None:
        """Return the seconds to wait before the next attempt; None: there is none.

        Args:
            failure: Why the last one ended.
            batches: How many batches this process has committed.
            state: What the pipeline was doing.
        """
        if batches != self._committed:
            self._committed = batches
            self.failures = self._others = 0
            self._away_since = None
        self.failures += 1
        if is_outage(failure):
            now = self.clock()
            self._away_since = self._away_since or now
            pause = min(_BACKOFF_S * 2 ** min(self.failures - 1, 10), _MOST_OUTAGE_BACKOFF_S)
            return None if now - self._away_since + pause > self.deadline else pause
        self._away_since = None
        self._others += 1
        if state == "starting" or not is_retryable(failure) or self._others >= MOST_FAILURES:
            return None
        return min(_BACKOFF_S * 2 ** (self._others - 1), _MOST_BACKOFF_S)


def keep_trying(
    attempt: Callable[[], Ending], policy: RestartPolicy, name: str, watch: Watch, limits: Limits
) -> Ending:
    """Run a pipeline until an attempt ends it, or one fails for good.

    Args:
        attempt: Takes the pipeline over and runs it.
        policy: Decides what follows a failure.
        name: Of the pipeline.
        watch: Its progress.
        limits: After a stop there is no other attempt.

    Raises:
        KaflowError: What ended the last attempt.
        DrainIncomplete: It was cut off, and its tasks may still run.
    """
    while True:
        try:
            return attempt()
        except Exception as error:
            failure = to_error(error, f"running pipeline '{name}'")
            if limits.overdue.is_set():
                raise DrainIncomplete(f"pipeline '{name}' did not stop in time") from failure
            failure.causes = causes_of(failure)
            pause = policy.after(failure, watch.batches, watch.now.state)
            if pause is None:
                raise failure from error
            if limits.stop.is_set():
                LOGGER.warning("pipeline '%s' stops within a batch: %s", name, failure)
                return "drained"
            failures, said = policy.failures, masked("", str(failure))
            LOGGER.warning("pipeline '%s' starts again: %s", name, failure)
            LOGGER.debug("%s", getattr(failure, "details", ""))
            watch.say(state="degraded", failures=failures, last_error=said)
            if limits.stop.wait(pause):
                return "drained"

"""Waits for brokers that do not answer yet, and for topics that do not exist yet."""

import time
from collections.abc import Callable, Sequence

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.errors import BrokerAway

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0
_ATTEMPT_MS = 5_000
_FIRST_MS = 1_000


def await_brokers(
    settings: KafkaSettings,
    deadline: int,
    on_wait: Callable[[str], None] = lambda text: None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Return once a broker answers.

    Args:
        settings: How to reach the brokers.
        deadline: Milliseconds after which to give up.
        on_wait: Called once, when the first attempt has failed.
        stopped: Asked meanwhile whether to give up.

    Raises:
        BrokerAway: None does, or it was stopped.
        LoginRefused: One does, and refuses the login or the certificate: waiting does not help.
    """
    begun = time.monotonic()
    pause, announced = _FIRST_PAUSE_S, False
    while True:
        left = deadline - int((time.monotonic() - begun) * 1000)
        try:
            # the first attempt is short, so that a person soon hears what is waited for
            describe(
                settings, [], max(min(_ATTEMPT_MS if announced else _FIRST_MS, left // 2), 100)
            )
        except BrokerAway as error:
            left = deadline / 1000 - (time.monotonic() - begun)
            if stopped() or (announced and left <= pause):
                raise BrokerAway(
                    f"no broker at {settings.bootstrap} answered within {deadline / 1000:g} s",
                    hint=error.hint,
                ) from error
            if not announced:
                announced = True
                on_wait(
                    f"waiting for a broker at {settings.bootstrap}, at most {deadline / 1000:g} s"
                )
        else:
            return
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def await_topics(
    settings: KafkaSettings,
    topics: Sequence[str],
    deadline: int,
    on_wait: Callable[[str], None] = lambda text: None,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Return once topics exist, or someone asks to stop.

    Args:
        settings: How to reach the brokers.
        topics: Their names.
        deadline: Milliseconds that the brokers may be away meanwhile.
        on_wait: Called once with those that do not exist yet.
        stopped: Asked meanwhile whether to give up.

    Raises:
        BrokerAway: No broker answers for too long.
        SourceError: A topic may not be described.
    """
    pause, announced = _FIRST_PAUSE_S, False
    while not stopped():
        try:
            found = describe(settings, topics)
        except BrokerAway:  # who waits without end outlives a restart of the brokers
            await_brokers(settings, deadline, on_wait, stopped)
            continue
        missing = [name for name, info in found.items() if not info.exists]
        if not missing:
            return
        if not announced:
            announced = True
            names = ", ".join(f"'{name}'" for name in missing)
            several = len(missing) > 1
            on_wait(
                f"waiting for {'topics' if several else 'topic'} {names}, which "
                f"{'do' if several else 'does'} not exist yet"
            )
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)

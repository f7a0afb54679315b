"""Which of many kills a run of the tests tries: a share that the seed picks, or all of them.

`KAFLOW_KILLS=all` tries all, `KAFLOW_KILLS_SEED` picks some again. The name of a test says which
kill it tries, so `KAFLOW_KILLS=all` with `-k` repeats one.
"""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

ASKED = os.environ.get("KAFLOW_KILLS", "")
ALL = ASKED == "all"


def _seed() -> int:
    asked = os.environ.get("KAFLOW_KILLS_SEED")
    if asked:
        return int(asked)
    # the processes of one run must name the same tests
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    return int(run, 16) % 10**6 if run else random.randrange(10**6)


SEED = _seed()


def peace_or(kills: Sequence[T], count: int) -> list[T | None]:
    """Return kills as `share`; where all are asked for, None before them: a run without any, with
    what a run that was killed does at its end."""
    return [*([None] if ALL else []), *share(kills, count)]


def share(kills: Sequence[T], count: int) -> list[T]:
    """Return so many of the kills, in their order, or all of them where all are asked for."""
    if ALL or count >= len(kills):
        return [*kills]
    chosen = random.Random(f"{SEED} {kills}").sample(range(len(kills)), count)
    return [kills[place] for place in sorted(chosen)]

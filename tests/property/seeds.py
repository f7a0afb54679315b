"""Which seeds of random cases a run of the tests takes: a share, or all of them.

Each kind of case has a number. `make test` takes a sixteenth of them;
`KAFLOW_RANDOM_CASES=all` takes all, `KAFLOW_RANDOM_CASES=20000` so many of each kind, and
`KAFLOW_RANDOM_FIRST=50000` others.
"""

import os

ASKED = os.environ.get("KAFLOW_RANDOM_CASES", "")
ALL = ASKED != ""
SHARE = 16
TOGETHER = 20
"""Seeds that one test runs."""


def blocks(first: int, count: int) -> list[range]:
    """Cut seeds into the tests that run them."""
    end = first + count
    return [range(at, min(at + TOGETHER, end)) for at in range(first, end, TOGETHER)]


def many(first: int, count: int) -> list[range]:
    """Return the seeds behind those of the fast part, of a kind of which there are so many."""
    asked = int(ASKED) if ASKED.isdecimal() else count if ALL else -(-count // SHARE)
    return blocks(int(os.environ.get("KAFLOW_RANDOM_FIRST", first)), asked)

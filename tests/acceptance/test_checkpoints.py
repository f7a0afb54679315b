"""Machines are lost, and others go on from the checkpoints: each row is delivered once.

Without Spark, as in `test_crash_points.py`, and with a store that speaks S3.
`KAFLOW_LOSSES_SEED` repeats the machines that were lost at random; `KAFLOW_KILLS=all` loses more.
"""
# pyright: basic

import os
import random
import sys
from dataclasses import replace

import pytest

from tests.acceptance.crash_pipeline import create_outputs
from tests.acceptance.kills import ALL, share

pytestmark = [pytest.mark.kafka, pytest.mark.services]

SEED = int(os.environ.get("KAFLOW_LOSSES_SEED", random.randrange(10**6)))
LOST = 20 if ALL else 4
STEPS = (
    "batch_logged",
    "mapped",
    "changes_written",
    "before_commit",
    "committed",
    "before_commit_log",
    "commit_logged",
    "snapshot_copied",
)
AHEAD = ("committed", "before_commit_log")
"""Where the sink has a batch of which the log, and so every checkpoint, does not know yet; half of
the machines are lost there."""
INTERRUPTED = share((1, 2, 3, 5, 8, 11, 14, 20), 2)
"""Writes to the bucket that succeed: of the head, of files, of a manifest, of the next head, …"""


@pytest.fixture(scope="module")
def lost(machines, small):
    """Runs that were killed somewhere, and whose disks are gone."""
    chance, orders = random.Random(SEED), []
    for number in range(LOST):
        name = f"lost-{number}"
        create_outputs(machines.broker.settings, name)
        step = chance.choice(AHEAD if number < LOST / 2 else STEPS)
        at = f"{step}:{chance.randrange(2, 9)}"
        orders.append(replace(small, name=name, crash_at=at))
    killed = machines.run(orders)
    ahead = [machines.ahead(each) for each in orders]
    for each in orders:
        machines.lose(each)
    calm = [replace(each, crash_at="") for each in orders]
    return list(zip(calm, killed, ahead, machines.run(calm), strict=True))


def test_the_sink_was_ahead_of_most_checkpoints(lost):
    sys.stdout.write(f"KAFLOW_LOSSES_SEED={SEED}\n")
    assert sum(ahead > 0 for _, _, ahead, _ in lost) >= LOST / 2


@pytest.mark.parametrize("number", range(LOST))
def test_another_machine_goes_on(machines, unbroken, lost, number):
    sys.stdout.write(f"KAFLOW_LOSSES_SEED={SEED}\n")
    order, killed, _, last = lost[number]
    assert (killed.how, killed.said) == ("killed", "")
    assert (last.how, last.said) == ("ended", "")
    assert machines.delivered(order) == unbroken


@pytest.fixture(scope="module")
def interrupted(machines, small):
    """Runs that were killed while they wrote to the bucket, and whose disks are gone."""
    orders = [replace(small, name=f"interrupted-{writes}") for writes in INTERRUPTED]
    for each in orders:
        create_outputs(machines.broker.settings, each.name)
    killed = machines.run([replace(o, writes=w) for o, w in zip(orders, INTERRUPTED, strict=True)])
    for each in orders:
        machines.lose(each)
    return dict(
        zip(INTERRUPTED, zip(orders, killed, machines.run(orders), strict=True), strict=True)
    )


@pytest.mark.parametrize("writes", INTERRUPTED)
def test_an_upload_that_was_cut_off_does_not_count(machines, unbroken, interrupted, writes):
    order, killed, last = interrupted[writes]
    assert killed.how == "killed"
    assert (last.how, last.said) == ("ended", "")
    assert machines.delivered(order) == unbroken

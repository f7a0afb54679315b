"""Killed on Spark again and again, pipelines deliver the rows of a run in peace.

One writes a topic and one a table, in the same process, so that each kill hits both.
`test_crash_points.py` tries every step without Spark. `KAFLOW_KILLS=all` tries every step here,
`KAFLOW_KILLS=<n>` makes n random kills, and `KAFLOW_KILLS_SEED` repeats some.
"""

import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import get_args

import pytest

from kaflow_engine.runtime.application import run_pipelines
from kaflow_engine.runtime.crash import CrashPoint
from kaflow_engine.testing.broker import Broker
from tests.acceptance.crash_chain import VICTIMS, Chain, both_delivered
from tests.acceptance.crash_kinds import OF_REPLACING
from tests.acceptance.crash_on_spark import config, plans
from tests.acceptance.crash_pipeline import create_outputs, load_topics

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ASKED = os.environ.get("KAFLOW_KILLS", "")
COUNT = int(ASKED) if ASKED.isdecimal() else 0
SEED = int(os.environ.get("KAFLOW_KILLS_SEED", random.randrange(10**6)))
CHOSEN = (
    ("changes_written", "worker"),
    ("before_commit", "broker"),
    ("files_written", "worker"),
    ("slot_claimed", "worker"),
    ("rows_produced", "worker"),
    ("committed", "sleeper"),
    ("mapped", "worker"),
    ("before_table", "driver"),
    ("before_commit_log", "jvm"),
    ("marker_produced", "broker"),
    ("committed", "worker"),
    ("batch_logged", "driver"),
    ("before_commit", "sleeper"),
    ("table_taken", "driver"),
    ("snapshot_copied", "driver"),
)
EVERY = tuple(
    (point, victim)
    for point in get_args(CrashPoint)
    for victim in VICTIMS
    if point not in OF_REPLACING
)
RANDOM = ("driver",) * 3 + ("jvm",) * 2 + ("worker",) * 13 + ("broker",) * 2
OPENING = ("before_slot", "slot_claimed")
"""A run passes them once, at its first delivery."""
EVENTS = max(40_000, 500 * COUNT) if ASKED else 4_000
"""Enough that a chain ends before its input does: while a kill is under way, others go on."""
REPORT_EVERY = 10


@pytest.fixture(scope="module")
def brokers():
    """A broker for each chain, because it is killed; both hold the same records."""
    with Broker() as first, Broker() as second:
        for broker in (first, second):
            load_topics(broker.settings, "in", EVENTS)
        yield dict(zip(WORKS, (first, second), strict=True))


@pytest.fixture(scope="module")
def expected(brokers, spark, tmp_path_factory):
    """What a run in peace does, with the same cuts."""
    path, broker = tmp_path_factory.mktemp("peace"), next(iter(brokers.values()))
    both = plans("peace", "in", str(path)).values()
    for plan in both:
        create_outputs(broker.settings, plan.name)
    settings = config(broker.bootstrap, str(path))
    run_pipelines(list(both), settings, until_caught_up=True, spark=spark)
    found = both_delivered(broker, path, "peace")
    for each in found.values():
        assert each.counters["emitted"] > EVENTS * 0.9
        assert each.letters
    return found


@pytest.fixture(scope="module")
def chains(expected, brokers, tmp_path_factory):
    """Both chains, at once: a start waits more than it works."""

    def chain(name, work):
        with Chain(brokers[name], tmp_path_factory.mktemp(name), name, "in") as found:
            work(found)
            found.finish()
            return found.delivered()

    with ThreadPoolExecutor(2) as threads:
        yield {name: threads.submit(chain, name, work) for name, work in WORKS.items()}


def kill_where_chosen(chain):
    for point, victim in EVERY if ASKED == "all" else CHOSEN:
        chain.progress()
        if point in OPENING:
            chain.kill("workers")  # new ones open producers
        chain.kill(victim, chain.stop_at(point))


def kill_at_random(chain, seed, count=0):
    chance, begun = random.Random(seed), time.monotonic()
    victims = chance.choices(RANDOM, k=count) if count else list(RANDOM)
    chance.shuffle(victims)
    for victim in victims:
        if victim == "broker" or chance.random() < 0.7:  # else maybe while it starts, or recovers
            chain.progress()
        time.sleep(chance.uniform(0, 0.8))
        chain.kill(victim)
        if chain.kills % REPORT_EVERY == 0:
            so_far = f"{chain.kills} of {len(victims)} kills, {chain.batches} batches"
            sys.stderr.write(f"{chain.name}: {so_far}, {time.monotonic() - begun:.0f} s\n")


WORKS = (
    {
        "first": partial(kill_at_random, seed=SEED, count=COUNT // 2),
        "second": partial(kill_at_random, seed=SEED + 1, count=COUNT - COUNT // 2),
    }
    if COUNT
    else {"chosen": kill_where_chosen, "random": partial(kill_at_random, seed=SEED)}
)


@pytest.mark.parametrize("name", WORKS)
def test_killed_pipelines_deliver_each_row_once(expected, chains, name):
    sys.stdout.write(f"KAFLOW_KILLS_SEED={SEED}\n")
    assert chains[name].result() == expected

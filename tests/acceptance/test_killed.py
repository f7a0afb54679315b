"""Killed on Spark again and again, a pipeline delivers the rows of a run in peace.

`test_crash_points.py` tries every step without Spark. `KAFLOW_KILLS=all` tries every step here,
`KAFLOW_KILLS=<n>` makes n random kills, and `KAFLOW_KILLS_SEED` repeats some.
"""

import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest

from kaflow_engine.runtime.application import run_pipelines
from kaflow_engine.runtime.crash import CrashPoint
from kaflow_engine.testing.broker import Broker
from tests.acceptance.crash_chain import VICTIMS, Chain
from tests.acceptance.crash_on_spark import config
from tests.acceptance.crash_pipeline import (
    crash_plan,
    create_outputs,
    delivered,
    load_topics,
    log_of,
)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ASKED = os.environ.get("KAFLOW_KILLS", "")
SEED = int(os.environ.get("KAFLOW_KILLS_SEED", random.randrange(10**6)))
CHOSEN = (
    ("changes_written", "worker"),
    ("before_commit", "broker"),
    ("slot_claimed", "worker"),
    ("rows_produced", "worker"),
    ("committed", "sleeper"),
    ("mapped", "worker"),
    ("before_commit_log", "jvm"),
    ("marker_produced", "broker"),
    ("committed", "worker"),
    ("batch_logged", "driver"),
    ("before_commit", "sleeper"),
    ("snapshot_copied", "driver"),
)
EVERY = tuple(
    (point, victim)
    for point in get_args(CrashPoint)
    for victim in VICTIMS
    if point != "piece_committed"  # no batch of these takes that long
)
RANDOM = ("driver",) * 3 + ("jvm",) * 2 + ("worker",) * 13 + ("broker",) * 2
OPENING = ("before_slot", "slot_claimed")
"""A run passes them once, at its first delivery."""
EVENTS = 40_000 if ASKED else 4_000
"""Enough that a chain ends before its input does: while a kill is under way, others go on."""


@pytest.fixture(scope="module")
def brokers():
    """A broker for each chain, because it is killed; both hold the same records."""
    with Broker() as first, Broker() as second:
        for broker in (first, second):
            load_topics(broker.settings, "in", EVENTS)
        yield {"chosen": first, "random": second}


@pytest.fixture(scope="module")
def expected(brokers, spark, tmp_path_factory):
    """What a run in peace does, with the same cuts."""
    path, broker = tmp_path_factory.mktemp("peace"), brokers["chosen"]
    create_outputs(broker.settings, "peace")
    settings = config(broker.bootstrap, str(path))
    run_pipelines([crash_plan("peace", "in")], settings, until_caught_up=True, spark=spark)
    found = delivered(broker.settings, "peace", log_of(path, "peace"))
    assert found.counters["emitted"] > EVENTS * 0.9
    assert found.letters
    return found


@pytest.fixture(scope="module")
def chains(expected, brokers, tmp_path_factory):
    """Both chains, at once: a start waits more than it works."""

    def chain(name, work):
        path, broker = tmp_path_factory.mktemp(name), brokers[name]
        with Chain(broker, path, name, "in") as found:
            work(found)
            found.finish()
        return delivered(broker.settings, name, log_of(path, name))

    with ThreadPoolExecutor(2) as threads:
        works = {"chosen": kill_where_chosen, "random": kill_at_random}
        yield {name: threads.submit(chain, name, work) for name, work in works.items()}


def kill_where_chosen(chain):
    for point, victim in EVERY if ASKED == "all" else CHOSEN:
        chain.progress()
        if point in OPENING:
            chain.kill("workers")  # new ones open producers
        chain.kill(victim, chain.stop_at(point))


def kill_at_random(chain):
    chance = random.Random(SEED)
    victims = list(RANDOM)
    if ASKED.isdecimal():
        victims = chance.choices(RANDOM, k=int(ASKED))
    chance.shuffle(victims)
    for victim in victims:
        if victim == "broker" or chance.random() < 0.7:  # else maybe while it starts, or recovers
            chain.progress()
        time.sleep(chance.uniform(0, 0.8))
        chain.kill(victim)


@pytest.mark.parametrize("name", ["chosen", "random"])
def test_a_killed_pipeline_delivers_each_row_once(expected, chains, name):
    sys.stdout.write(f"KAFLOW_KILLS_SEED={SEED}\n")
    assert chains[name].result() == expected

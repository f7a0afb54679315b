"""Killed on Spark again and again, pipelines deliver the rows of a run in peace.

One writes a topic and one a table, in the same process, so that each kill hits both.
`test_crash_points.py` tries every step without Spark. `KAFLOW_KILLS=all` tries every step here,
`KAFLOW_KILLS=<n>` makes n random kills, and `KAFLOW_KILLS_SEED` repeats some.
"""

import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import get_args

import pytest

from kaflow_engine.runtime.application import run_pipelines
from kaflow_engine.runtime.tasks.crash import CrashPoint
from kaflow_engine.testing.services.broker import Broker
from tests.acceptance.crash_chain import VICTIMS, CaughtUp, Chain, both_delivered
from tests.acceptance.crash_kinds import OF_CLUSTERS, OF_REPLACING
from tests.acceptance.crash_on_spark import config, plans
from tests.acceptance.crash_pipeline import create_outputs, load_topics
from tests.acceptance.kills import ALL, ASKED, SEED, share

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

COUNT = int(ASKED) if ASKED.isdecimal() else 0
CHOSEN = (
    ("before_commit", "broker"),
    ("files_written", "worker"),
    ("before_table", "driver"),
    ("before_commit_log", "jvm"),
    ("before_commit", "sleeper"),
)
"""Each victim once; `all` tries the others, `test_crash_points.py` every step without Spark."""
SHARE, BESIDE = 2, 1
"""So many of them are killed in a run of the tests, and so many at random; the seed says which."""
EVERY = tuple(
    (point, victim)
    for point in get_args(CrashPoint)
    for victim in VICTIMS
    if point
    not in (*OF_REPLACING, *OF_CLUSTERS, "piece_committed")  # no batch of these takes that long
)
RANDOM = ("driver", "jvm", "broker", "worker", "worker")
OPENING = ("before_slot", "slot_claimed")
"""A run passes them once, at its first delivery."""
EVENTS = 12_000 if ASKED else 2_400
"""What two pipelines take while some are killed; then the next two begin."""
REPORT_EVERY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What is killed, and when."""

    victim: str
    point: str = ""
    """The step at which it stands still; empty: wherever it is."""
    waits: bool = True
    """Whether for another batch to be committed; else maybe something starts, or recovers."""
    pause: float = 0.0
    """Seconds after that batch."""


def chosen():
    kills = EVERY if ALL else share(CHOSEN, SHARE)
    return [Kill(point=point, victim=victim) for point, victim in kills]


def at_random(seed, count=0):
    chance = random.Random(seed)
    victims = chance.choices(RANDOM, k=count) if count else chance.sample(RANDOM, BESIDE)
    return [
        Kill(
            victim=victim,
            waits=chance.random() < 0.7 or victim == "broker",
            pause=chance.uniform(0, 0.8),
        )
        for victim in victims
    ]


KILLS = (
    {"first": at_random(SEED, COUNT // 2), "second": at_random(SEED + 1, COUNT - COUNT // 2)}
    if COUNT
    else {"chosen": [*chosen(), *at_random(SEED)]}
)


@pytest.fixture(scope="module")
def brokers():
    """A broker for each chain, because it is killed; all hold the same records."""
    with ExitStack() as stack:
        found = {name: stack.enter_context(Broker()) for name in KILLS}
        for broker in found.values():
            load_topics(broker.settings, "in", EVENTS)
        yield found


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
    """What pipelines have delivered, two after the other; all chains at once, for they wait."""
    with ThreadPoolExecutor(len(KILLS)) as threads:
        yield {
            name: threads.submit(chain, brokers[name], tmp_path_factory.mktemp(name), name, kills)
            for name, kills in KILLS.items()
        }


def chain(broker, path, name, kills):
    """Kill pipelines until all kills are done; return what each two of them have delivered."""
    found, done, begun = [], 0, time.monotonic()
    while done < len(kills):
        before = done
        with Chain(broker, path, f"{name}-{len(found)}", "in") as link:
            with suppress(CaughtUp):
                while done < len(kills):
                    strike(link, kills[done])
                    done += 1
                    if done % REPORT_EVERY == 0:
                        so_far = f"{done} of {len(kills)} kills, {time.monotonic() - begun:.0f} s"
                        sys.stderr.write(f"{name}: {so_far}\n")
            link.finish()
            found.append(link.delivered())
        assert done > before, f"{kills[done]} never came about"
    return found


def strike(link, kill):
    if kill.waits:
        link.progress()
    if kill.point in OPENING:
        link.kill("workers")  # new ones open producers
    time.sleep(kill.pause)
    link.kill(kill.victim, link.stop_at(kill.point) if kill.point else None)


@pytest.mark.parametrize("name", KILLS)
def test_killed_pipelines_deliver_each_row_once(expected, chains, name):
    sys.stdout.write(f"KAFLOW_KILLS_SEED={SEED}\n")
    for found in chains[name].result():
        assert found == expected

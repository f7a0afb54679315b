"""KS29, RA21: many rows or groups expire in one batch, entries and memory return to the baseline.

`KAFLOW_EXPIRING_KEYS=1000000` for more of them.
"""
# pyright: basic

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from rocksdict import Rdict

from bench.feed.data import START
from bench.measure.processes import most_rss, tree, watched
from bench.measure.product import Product
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.state.copies.rocks_options import copy_options

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PARTITIONS = 2
KEYS = os.environ.get("KAFLOW_EXPIRING_KEYS")
FEW = 2 * PARTITIONS
HOUR = 3_600_000
WORKER_MIB = 600.0
PATIENCE_S = 120 + int(KEYS or 0) // 2_000


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What expires."""

    pipeline: str
    keys: int
    """How many at once."""
    updates: int = 1
    """Records of each."""
    counters: Callable[[int], dict[str, int]]
    """What the product has counted once all but the last keys have expired, of so many."""
    entries: int
    """Of each key that has not expired, with its due times."""


KINDS = {
    "rows that wait": Kind(
        pipeline="""\
name: expiring
query: SELECT c.user_id, p.tier FROM "{clicks}" c LEFT JOIN "{profiles}" p USING (user_id)
output: {{topic: {output}, key: user_id}}
state: {{events: {{default_ttl: 1h}}, dimensions: ["{profiles}"]}}
emission: {{type: smart, require: [tier]}}
dimensions_first: false
topics:
  "{clicks}": {{columns: {{user_id: VARCHAR, at: BIGINT}}, event_time: at}}
  "{profiles}": {{columns: {{user_id: VARCHAR, tier: VARCHAR}}}}
""",
        keys=int(KEYS or 30_000),
        counters=lambda sent: {"waiting": FEW, "expired": sent - FEW},
        entries=2,
    ),
    "groups": Kind(
        pipeline="""\
name: expiring
query: SELECT user_id, count(*) AS n, max(at) AS newest FROM "{clicks}" GROUP BY user_id
output: {{topic: {output}, format: json}}
aggregation: {{ttl: 1h}}
topics:
  "{clicks}": {{columns: {{user_id: VARCHAR, at: BIGINT}}, event_time: at}}
""",
        keys=int(KEYS or 6_000),
        updates=10,
        counters=lambda sent: {"emitted": sent},
        entries=2,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_expired_leaves_nothing_behind(broker, unique, tmp_path, kind):
    about = KINDS[kind]
    clicks, profiles, output = (f"{unique}.{name}" for name in ("clicks", "profiles", "rows"))
    for topic in (clicks, profiles, output):
        broker.create_topic(topic, PARTITIONS)
    producer = open_producer(broker.settings).api

    def expire(wave, keys=about.keys):
        """Send clicks of so many users, and a few clicks whose time shows that theirs is up."""
        for hours, count in ((4 * wave, keys), (4 * wave + 2, FEW)):
            for n in [*range(count)] * about.updates:
                value = b'{"user_id":"%d.u%d","at":%d}' % (hours, n, START + hours * HOUR)
                while len(producer) > 50_000:
                    producer.poll(0.05)
                producer.produce(clicks, value, partition=n % PARTITIONS)
            assert producer.flush(60) == 0
        sent.append((keys + FEW) * about.updates)
        wait_for(product, sum(sent), about.counters(sum(sent)))
        return most_rss(tree(product.pid), "worker")

    sent = []
    product = Product(folder=tmp_path / "run", brokers=broker.bootstrap)
    product.write(about.pipeline.format(clicks=clicks, profiles=profiles, output=output))
    with product, watched(product.pid, os.getpid(), 0.2) as seen:
        after = [expire(wave) for wave in (1, 2, 3)]
        for wave in (4, 5):  # what is up leaves with the next batch, and the copies one later
            expire(wave, FEW)
    sys.stdout.write(f"largest worker: {seen.worker:.0f} MiB; after each wave: {after}\n")
    assert seen.worker < WORKER_MIB
    assert after[-1] < after[0] * 1.15
    kept = stored(product.state)
    sys.stdout.write(f"{kept} entries of {about.keys} keys at a time\n")
    assert kept <= 2 * about.entries * 2 * FEW  # those of two batches


def wait_for(product, records, counters):
    """Wait until the product has read so many records and its counters are these."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        assert product.running, product.words()
        told = product.progress()
        last = told[-1] if told else {}
        counted = last.get("counters", {})
        whole = all(counted.get(name) == count for name, count in counters.items())
        if whole and last.get("records") == records:
            return
        time.sleep(0.1)
    raise AssertionError(f"{last}\n{product.words()}")


def stored(state: Path) -> int:
    """Return how many entries the copies of a state hold."""
    found = 0
    for current in state.glob("**/CURRENT"):
        if "copies" in current.parts:
            copy = Rdict(str(current.parent), copy_options())
            found += sum(1 for key in copy.keys() if key != b"")
            copy.close()
    return found

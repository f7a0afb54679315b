"""Rounds in which all engines do the same work, one after the other."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.feed.data import Fill
from bench.feed.load import load
from bench.measure.latency import Reader, now, paced
from bench.measure.processes import watched
from bench.measure.product import Product
from bench.measure.rates import percentile
from bench.measure.throughput import PATIENCE_S
from bench.peers.jobs import FLINK, PEERS, STREAMS, Jdk, Job, Peer, compiled
from bench.peers.measure import Growth, calibration_ms, rate
from bench.peers.works import WORKS, Work, works_over
from kaflow_engine.connectors.kafka.admin import delete_topics
from kaflow_engine.runtime.spark.master import cores
from kaflow_engine.testing.services.broker import Broker

KAFLOW = "kaflow"
ENGINES = (KAFLOW, FLINK.name, STREAMS.name)

_PARTITIONS = 4
_WARM_UP_S = 12.0
_RATE = 1_000
"""Records a second of which latency is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerOptions:
    """What one call does."""

    events: int = 12_000_000
    keys: int = 200_000
    batch: int | None = None
    """Most records of a micro-batch of ours; None: as it is without a setting."""
    rounds: int = 3
    latency_seconds: float = 30.0
    master: str = "local[2]"
    seed: int = 1


@dataclass(slots=True, kw_only=True)
class Rounds:
    """What the runs of one call share."""

    options: PeerOptions
    broker: Broker
    jdk: Jdk
    folder: Path
    say: Callable[[str], None]
    _paths: dict[str, str] = field(default_factory=dict[str, str])
    """Class path of each peer."""
    _works: dict[str, Work] = field(default_factory=dict[str, Work])
    """By name."""

    def prepare(self) -> None:
        """Compile the jobs and fill the topics."""
        classes = self.folder / "classes"
        classes.mkdir(parents=True)
        self._paths = {peer.name: compiled(peer, self.jdk, classes) for peer in PEERS}
        options = self.options
        clicks = Fill(
            topic="clicks",
            kind="clicks",
            records=options.events,
            keys=options.keys,
            seed=options.seed,
        )
        profiles = Fill(topic="profiles", kind="profiles", records=options.keys, keys=options.keys)
        load(self.broker.settings, [clicks, profiles])
        self._works = works_over(clicks)

    def take(self, number: int) -> dict[str, Any]:
        """Take one round; each begins with another engine.

        Raises:
            RunError: An engine failed, or its rows are not those that must come.
        """
        turn = (number - 1) % len(ENGINES)
        order = (*ENGINES[turn:], *ENGINES[:turn])
        speeds: dict[str, tuple[float, float]] = {}
        found: dict[str, Any] = {"calibration_ms": 0.0, **{work: {} for work in WORKS}}
        found |= {"latency_ms": {}, "first_output_s": {}, "rss_mb": {}}
        before = self._speed()
        for work in WORKS:
            for engine in order:
                name = f"{work}_{engine}_{number}"
                numbers = self._throughput(name, engine, work)
                after = self._speed()
                speeds[f"{work}.{engine}"], before = (before, after), after
                found[work][engine] = numbers["records_per_s"]
                if work == "w1":
                    found["first_output_s"][engine] = numbers["first_output_s"]
                most = max(numbers["rss_mb"], found["rss_mb"].get(engine, 0.0))
                found["rss_mb"][engine] = most
                self.say(f"round {number}, {work}, {engine}: {numbers} ({after:.0f} ms)")
        for engine in (name for name in order if name != FLINK.name):
            found["latency_ms"][engine] = self._latency(f"live_{engine}_{number}", engine)
            after = self._speed()
            speeds[f"latency.{engine}"], before = (before, after), after
            self.say(f"round {number}, latency, {engine}: {found['latency_ms'][engine]}")
        all_speeds = [speed for pair in speeds.values() for speed in pair]
        found["calibration_ms"] = round(sum(all_speeds) / len(all_speeds), 1)
        return {**found, "calibrations_ms": speeds}

    def _throughput(self, name: str, engine: str, work: str) -> dict[str, float]:
        kafka, about = self.broker.settings, self._works[work]
        self.broker.create_topic(name, _PARTITIONS)
        growth = Growth(kafka=kafka, topic=name, partitions=_PARTITIONS)
        try:
            child = self._child(name, engine, work, "clicks")
            with child, watched(child.pid, self.broker.pid) as seen:
                least = about.least
                child.until(lambda: growth.complete(least), PATIENCE_S, f"{least:,} rows")
            came = about.came(kafka, name)
        finally:
            delete_topics(kafka, [name])
        return {
            "records_per_s": round(rate(growth.samples) * came.records / came.rows),
            "first_output_s": round(growth.samples[0][0] / 1000 - child.began, 1),
            "rss_mb": round(seen.tree),
        }

    def _latency(self, name: str, engine: str) -> dict[str, float]:
        kafka, source = self.broker.settings, f"clicks_{name}"
        for topic in (name, source):
            self.broker.create_topic(topic, _PARTITIONS)
        keys, seconds = self.options.keys, self.options.latency_seconds
        try:
            child = self._child(name, engine, "w2", source)
            with child, Reader(kafka, name).running() as reader:
                with paced(kafka, source, _PARTITIONS, _RATE, keys, self.options.seed) as sent:
                    child.until(lambda: bool(reader.delays), PATIENCE_S, "a first row")
                    time.sleep(_WARM_UP_S)
                    start = now()
                    time.sleep(seconds)
                    stop = now()
                count = sent()
                child.until(lambda: len(reader.delays) >= count, PATIENCE_S, f"{count} rows")
        finally:
            delete_topics(kafka, [name, source])
        delays = [delay for at, delay in reader.delays if start <= at - delay < stop]
        return {"p50": percentile(delays, 0.50), "p99": percentile(delays, 0.99)}

    def _child(self, name: str, engine: str, work: str, clicks: str) -> Product | Job:
        if engine == KAFLOW:
            product = Product(
                folder=self.folder / name,
                brokers=self.broker.bootstrap,
                master=self.options.master,
                settings={"max_records": str(batch)} if (batch := self.options.batch) else {},
            )
            product.write(self._works[work].pipeline(name, clicks))
            return product
        peer = _BY_NAME[engine]
        return Job(
            folder=self.folder / name,
            name=peer.title,
            jdk=self.jdk,
            class_path=self._paths[engine],
            peer=peer,
            arguments=(self.broker.bootstrap, work, clicks, "profiles", name),
            threads=cores(self.options.master),
        )

    def _speed(self) -> float:
        return calibration_ms(cores(self.options.master))


_BY_NAME: Mapping[str, Peer] = {peer.name: peer for peer in PEERS}

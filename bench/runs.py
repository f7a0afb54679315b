"""The runs: each starts the product again, measures, and leaves nothing but its numbers."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench import pipelines
from bench.connected import CONNECTED
from bench.feed.fills import SCHEMAS, fills_for
from bench.feed.load import load
from bench.measure.child import ROOT, environment
from bench.measure.latency import Reader, now, paced
from bench.measure.product import Product, batches_of
from bench.measure.rates import Batch, percentile, steady_rate, warm_up
from bench.measure.throughput import PATIENCE_S, Numbers, read_through
from bench.nexmark.runs import Nexmark
from bench.options import Options
from bench.report.account import check_account
from bench.report.shares import shares
from kaflow_engine.connectors.kafka.admin import delete_topics
from kaflow_engine.errors import RunError
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.runtime.spark.master import cores
from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.child import free_ports

_START_S = 600.0
_OUTPUTS = 4
_LIVE = 2
"""Partitions of the topics of the latency runs."""

NO_SETTINGS: Mapping[str, str] = {}


@dataclass(slots=True, kw_only=True)
class Runs:
    """What the runs of one call share."""

    options: Options
    broker: Broker
    registry: str | None
    folder: Path
    say: Callable[[str], None]
    round: int = 0
    _queries: Nexmark | None = None

    def fill(self) -> None:
        """Register schemas and fill all topics that the chosen runs read."""
        schemas: dict[str, int] = {}
        if self.registry is not None:
            registry = Registry(url=self.registry)
            schemas = {
                topic: registry.register(f"{topic}-value", json.dumps(schema), "AVRO")
                for topic, schema in SCHEMAS.items()
            }
        fills = fills_for(self.options.only, self.options.sizes, self.options.seed, schemas)
        load(self.broker.settings, fills)
        if "nexmark" in self.options.only:
            self._nexmark.fill()

    def take(self, run: str) -> Numbers:
        """Take one run and return its numbers."""
        if run in CONNECTED:
            with CONNECTED[run]() as connected:
                return self._throughput(run, connected.pipeline, connected.settings)
        runs: Mapping[str, Callable[[], Numbers]] = {
            "floor": self._floor,
            "a": lambda: self._throughput("a", self._filtering("clicks")),
            "b": lambda: self._throughput("b", self._enriching()),
            "c": lambda: self._throughput("c", self._enriching(delivery="at_least_once")),
            "d": lambda: self._throughput("d", self._enriching("late_clicks", smart=True)),
            "e": lambda: self._throughput(
                "e", self._enriching("avro_clicks", "avro_profiles", avro=True)
            ),
            "f": self._large,
            "g": lambda: {
                "a": self._latency("a", self._filtering),
                "b": self._latency("b", self._enriching),
            },
            "h": lambda: self._throughput(
                "h", lambda name: pipelines.pairing(name, "pair_clicks", "purchases", name)
            ),
            "j": lambda: self._throughput("j", self._grouping("clicks")),
            "k": lambda: self._throughput(
                "k", self._grouping("window_clicks", "tumble(INTERVAL 1 MINUTE)")
            ),
            "l": lambda: self._throughput(
                "l", self._grouping("hop_clicks", "hop(INTERVAL 5 MINUTE, INTERVAL 1 MINUTE)")
            ),
            "m": lambda: self._throughput(
                "m", lambda name: pipelines.joining_tables(name, "profiles", "balances", name)
            ),
            "n": lambda: self._throughput(
                "n", lambda name: pipelines.grouping_joined(name, "clicks", "profiles", name)
            ),
            "nexmark": lambda: self._nexmark.take(self.round, self.say),
            "w": self._requests,
            "x": lambda: self._throughput("x", self._changes(pipelines.PROJECTION)),
            "y": lambda: self._throughput("y", self._changes(pipelines.CHANGE_FILTER)),
        }
        return runs[run]()

    @property
    def _nexmark(self) -> Nexmark:
        if self._queries is None:
            options, make = self.options, self._product
            self._queries = Nexmark(
                broker=self.broker,
                sizes=options.sizes,
                seed=options.seed,
                make=make,
                queries=options.queries,
            )
        return self._queries

    def _filtering(self, clicks: str = "clicks") -> Callable[[str], str]:
        return lambda name: pipelines.filtering(name, clicks, name)

    def _changes(self, query: str) -> Callable[[str], str]:
        return lambda _: pipelines.changing(query, "avro_changes")

    def _enriching(
        self, clicks: str = "clicks", profiles: str = "profiles", **more: Any
    ) -> Callable[[str], str]:
        return lambda name: pipelines.enriching(name, clicks, profiles, name, **more)

    def _grouping(self, clicks: str, window: str | None = None) -> Callable[[str], str]:
        return lambda name: pipelines.grouping(name, clicks, name, window)

    def _floor(self) -> Numbers:
        sizes = self.options.sizes
        command = [sys.executable, "-m", "bench.measure.floor", self.broker.bootstrap, "clicks"]
        done = subprocess.run(
            [*command, str(sizes.batch), self.options.master],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment(),
            check=False,
        )
        if done.returncode:
            raise RunError("the floor was not measured", hint=done.stderr[-2000:])
        found = json.loads(done.stdout.splitlines()[-1])
        batches = [Batch(end=end, records=records, spent=spent) for end, records, spent in found]
        rate = steady_rate(batches, warm_up(len(batches)))
        return {"records_per_s": rate.records_per_s, "batch_ms": rate.batch_ms}

    def _product(
        self,
        name: str,
        pipeline: str,
        *options: str,
        settings: Mapping[str, str] = NO_SETTINGS,
    ) -> Product:
        own = dict(pair.split("=", 1) for pair in self.options.conf)
        product = Product(
            folder=self.folder / name,
            brokers=self.broker.bootstrap,
            registry=self.registry,
            master=self.options.master,
            settings={"max_records": str(self.options.sizes.batch), **settings, **own},
            options=options,
        )
        product.write(pipeline)
        return product

    def _throughput(
        self,
        run: str,
        pipeline: Callable[[str], str],
        settings: Mapping[str, str] = NO_SETTINGS,
    ) -> Numbers:
        name = f"run_{run}_{self.round}"
        shutil.rmtree(self.folder / name, ignore_errors=True)  # of an earlier call
        self.broker.create_topic(name, _OUTPUTS)
        try:
            product = self._product(name, pipeline(name), "--until-caught-up", settings=settings)
            found, entries = read_through(product, self.broker.pid)
            if run != "f":  # it is started once more
                shutil.rmtree(product.state)
        finally:
            delete_topics(self.broker.settings, [name])
        check_account(run, entries[-1]["counters"])
        found["shares"] = self._shares(entries)
        if loaded := _load_rate(entries):
            found["load_records_per_s"] = loaded
        return found

    def _shares(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        live = [e for e in batches_of(entries) if e["state"] == "running"]
        most = max(e["batch_records"] for e in live)
        pairs = list(pairwise(live))[warm_up(len(live)) - 1 :]
        steady = [(a, b) for a, b in pairs if b["batch_records"] >= 0.9 * most]
        wall = [b["time"] - a["time"] for a, b in steady]
        return shares([b["phases"] for _, b in steady], wall, cores(self.options.master))

    def _large(self) -> Numbers:
        pipeline = self._enriching("big_clicks", "big_profiles")
        found = self._throughput("f", pipeline)
        # the same state once more: how long until the first new row can be read
        name = f"run_f_{self.round}"
        self.broker.create_topic(name, _OUTPUTS)
        keys = self.options.sizes.big_keys
        product = self._product(name, pipeline(name))
        try:
            with (
                Reader(self.broker.settings, name).running() as reader,
                paced(self.broker.settings, "big_clicks", 4, 100, keys),
                product,
            ):
                product.until(lambda: bool(reader.delays), PATIENCE_S, "a first row")
                found["restart_s"] = reader.delays[0][0] / 1000 - product.began
            shutil.rmtree(product.state)
        finally:
            delete_topics(self.broker.settings, [name])
        return found

    def _requests(self) -> Numbers:
        name, seconds = f"run_w_{self.round}", self.options.sizes.latency_seconds
        shutil.rmtree(self.folder / name, ignore_errors=True)
        (port,) = free_ports(1)
        product = self._product(name, pipelines.receiving(name, port))
        alone = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "bench.measure.receiver",
                str(product.file),
                str(product.folder / "alone"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment(),
        )
        with alone:
            assert alone.stdout is not None
            assert alone.stdin is not None
            alone.stdout.readline()
            found: Numbers = {"alone_per_s": _sent(port, seconds)}
            alone.stdin.close()
        with product:
            product.until(lambda: product.live, _START_S, "a live stream")
            found["running_per_s"] = _sent(port, seconds)
        return found

    def _latency(self, which: str, make: Callable[[str], Callable[[str], str]]) -> Numbers:
        sizes, kafka = self.options.sizes, self.broker.settings
        name, source = f"run_g_{which}_{self.round}", f"live_{which}_{self.round}"
        shutil.rmtree(self.folder / name, ignore_errors=True)
        for topic in (name, source):
            self.broker.create_topic(topic, _LIVE)
        product = self._product(name, make(source)(name))
        rate, seconds = sizes.latency_rate, sizes.latency_seconds
        try:
            with product, Reader(kafka, name).running() as reader:
                product.until(lambda: product.live, _START_S + PATIENCE_S, "a live stream")
                with paced(kafka, source, _LIVE, rate, sizes.keys, self.options.seed) as sent:
                    time.sleep(seconds)
                    start = now()
                    time.sleep(seconds)
                    stop = now()
                    count = sent()
                product.until(lambda: len(reader.delays) >= count, 60, f"{count} rows")
                delays = [d for at, d in reader.delays if start <= at - d < stop]
        finally:
            delete_topics(kafka, [name, source])
        return {
            "p50_ms": percentile(delays, 0.50),
            "p95_ms": percentile(delays, 0.95),
            "p99_ms": percentile(delays, 0.99),
        }


def _sent(port: int, seconds: float) -> float:
    """Return how many requests a second were answered 200, over 100 connections."""
    command = [sys.executable, "-m", "bench.measure.senders", str(port), "100", str(seconds)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env=environment(), check=False
    )
    if done.returncode:
        raise RunError("requests were not taken", hint=done.stderr[-2000:])
    return json.loads(done.stdout)["requests_per_s"]


def _load_rate(entries: Sequence[Mapping[str, Any]]) -> float | None:
    loading = [e for e in batches_of(entries) if e["state"] == "loading dimensions"]
    if len(loading) < 3:
        return None
    spent = loading[-1]["time"] - loading[0]["time"]
    return sum(e["batch_records"] for e in loading[1:]) / spent * 1000

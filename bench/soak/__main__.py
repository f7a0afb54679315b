"""`python -m bench.soak`: a pipeline with waiting rows under a steady load, for an hour.

Rows wait for profiles that come seconds later, or never and expire, so the state turns over all the
time and should keep its size.
"""

import json
import os
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import pipelines
from bench.measure.processes import tree
from bench.measure.product import Product, batches_of
from bench.options import HERE
from bench.report.results import machine
from bench.soak.feed import CLICKS, PROFILES, SoakFeed
from bench.soak.verdicts import Sample, judge
from kaflow_engine.errors import KaflowError, RunError
from kaflow_engine.testing.services.broker import Broker

OUTPUT = "soaked"
TTL = "30s"
_PARTITIONS = 2
_START_S = 600.0
_KEPT = {"retention.ms": "600000", "segment.ms": "60000"}
"""Settings of the large topics: no one reads what is older than ten minutes."""


def run_soak(seconds: float, rate: float, every: float, folder: Path) -> dict[str, Any]:
    """Feed, watch and judge; Ctrl-C ends it early with what was seen so far."""
    about = machine()
    samples: list[Sample] = []
    began, interrupted = time.time(), False
    with ExitStack() as resources:
        broker = resources.enter_context(Broker())
        broker.create_topic(PROFILES, _PARTITIONS)
        for topic in (CLICKS, OUTPUT):
            broker.create_topic(topic, _PARTITIONS, config=_KEPT)
        product = Product(
            folder=folder,
            brokers=broker.bootstrap,
            settings={"state.rocksdb.checkpoint.interval": "1m"},
        )
        product.write(pipelines.enriching("soak", CLICKS, PROFILES, OUTPUT, smart=True, ttl=TTL))
        feed = SoakFeed(broker.settings, rate, _PARTITIONS)
        try:
            with product:
                product.until(lambda: product.live, _START_S, "a live stream")
                resources.enter_context(feed)
                product.until(lambda: bool(batches_of(product.progress())), _START_S, "a batch")
                began = time.time()
                while time.time() - began < seconds:
                    time.sleep(min(every, max(began + seconds - time.time(), 0.1)))
                    if not product.running:
                        raise RunError("kaflow run ended", hint=product.words())
                    samples.append(_sample(product, time.time() - began))
                    _say(samples[-1], feed.sent)
        except KeyboardInterrupt:
            interrupted = True
            sys.stderr.write("stopping\n")
    entries = product.progress()
    batches = [
        (entry["time"] / 1000 - began, entry["batch_ms"])
        for entry in batches_of(entries)
        if entry["time"] / 1000 >= began
    ]
    judged = judge(samples, batches)
    judged["verdicts"].append(_failures(entries))
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ"),
        "machine": about,
        "seconds": samples[-1].at if samples else 0.0,
        "rate": rate,
        "sent": feed.sent,
        "interrupted": interrupted,
        **judged,
        "counters": entries[-1]["counters"] if entries else {},
        "samples": [sample.as_dict() for sample in samples],
    }


def _sample(product: Product, at: float) -> Sample:
    usages = tree(product.pid)
    newest = product.progress()[-1]
    return Sample(
        at=at,
        rss={f"{u.role} {u.pid}" if u.role == "worker" else u.role: u.rss / 2**20 for u in usages},
        state=_size(product.state),
        copies=sum(_size(p) for p in product.state.glob("*/copies")),
        snapshots=sum(_size(p) for p in product.state.glob("*/snapshots")),
        spark=sum(_size(p) for p in product.state.glob("*/spark")),
        lag=sum(newest["lag"].values()),
        waiting=newest["counters"].get("waiting", 0),
    )


def _failures(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    errors = [entry["last_error"] for entry in entries if entry["state"] in ("degraded", "failed")]
    text = f"{len(errors)} times; first: {errors[0]}" if errors else "never"
    return {"promise": "nothing fails", "measured": text, "holds": not errors}


def _size(folder: Path) -> float:
    """Return the MiB of a folder's files; files that go meanwhile do not count."""
    total = 0
    for place, _, files in os.walk(folder):
        for file in files:
            try:
                total += os.stat(os.path.join(place, file)).st_size
            except OSError:
                continue
    return total / 2**20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the soak and write what came out."""
    parser = ArgumentParser(prog="bench.soak", description=__doc__)
    seconds = float(os.environ.get("SOAK_SECONDS", "3600"))
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--rate", type=float, default=5_000.0, help="records a second")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between samples")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--keep", type=Path, help="new folder for pipeline file, log and state")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    try:
        with TemporaryDirectory(prefix="kaflow-soak-") as scratch:
            folder = given.keep.absolute() if given.keep else Path(scratch) / "run"
            result = run_soak(given.seconds, given.rate, given.every, folder)
    except KaflowError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped; nothing is left running\n")
        return 130
    given.results.mkdir(parents=True, exist_ok=True)
    path = given.results / f"soak-{result['date']}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for verdict in result["verdicts"]:
        mark = "holds " if verdict["holds"] else "BREAKS"
        sys.stderr.write(f"{mark} {verdict['promise']}: {verdict['measured']}\n")
    sys.stderr.write(f"written to {path}\n")
    return 0 if all(verdict["holds"] for verdict in result["verdicts"]) else 1


def _say(sample: Sample, sent: int) -> None:
    memory = ", ".join(f"{name} {mib:.0f}" for name, mib in sample.by_role().items())
    sys.stderr.write(
        f"[{sample.at:6.0f} s] sent {sent:,}, lag {sample.lag:,}, waiting {sample.waiting:,}, "
        f"MiB: {memory}, state {sample.state:.1f}\n"
    )
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main())

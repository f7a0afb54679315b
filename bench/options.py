"""What to measure, how large, and how often."""

import os
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONNECTED_RUNS = "opqrst"
"""Into another system, or through one."""
CHANGE_RUNS = "xy"
"""Changes in Avro, by files of Streamling."""
SQLFLOW_RUNS = "uvz"
"""Files of SQLFlow."""
NEXMARK = "nexmark"
"""All its queries, which can be chosen one by one as well."""
NEXMARK_QUERIES = (
    *("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8", "q11", "q12"),
    *("q13", "q14", "q16", "q17", "q18", "q20"),
)
RUNS = (
    *("floor", *"abcdefgh", *"jklmn", *CONNECTED_RUNS, *SQLFLOW_RUNS),
    *("w", *CHANGE_RUNS, NEXMARK),
)
"""In the order in which a round takes them; the shares of each step (`i`) come with a and b."""

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is measured."""

    events: int = 4_800_000
    """Events of each throughput run."""
    keys: int = 200_000
    """Keys of the dimension, and of the joined events."""
    big_keys: int = 10_000_000
    """Keys of the large dimension."""
    batch: int = 200_000
    """Most records of a micro-batch."""
    latency_rate: int = 1_000
    """Records a second."""
    latency_seconds: float = 30.0
    """Measured time of a latency run, after as much again to warm up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What one call of the benchmark does."""

    sizes: Sizes
    only: tuple[str, ...] = RUNS
    queries: tuple[str, ...] = NEXMARK_QUERIES
    """Those of Nexmark."""
    rounds: int = 3
    master: str = "local[2]"
    seed: int = 1
    results: Path = HERE / "results"
    page: Path | None = HERE.parent / "engine" / "docs" / "benchmark.md"
    """Where table and plot go; None: nowhere."""
    keep: Path | None = None
    """Keep pipeline files, logs and progress of the runs here."""
    conf: tuple[str, ...] = ()
    """More settings of the product, KEY=VALUE."""


def scaled(sizes: Sizes, scale: float) -> Sizes:
    """Return smaller (or larger) sizes; batches shrink along, so that as many of them are seen."""
    if scale == 1:
        return sizes
    return Sizes(
        events=max(int(sizes.events * scale), 1),
        keys=max(int(sizes.keys * scale), 1),
        big_keys=max(int(sizes.big_keys * scale), 1),
        batch=max(int(sizes.batch * scale), 1),
        latency_rate=sizes.latency_rate,
        latency_seconds=max(sizes.latency_seconds * min(scale * 3, 1), 5.0),
    )


def read_options(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line; sizes can be set by the environment as well."""
    own = Sizes()
    parser = ArgumentParser(prog="bench", description="Measures kaflow on this machine.")
    parser.add_argument(
        "--only", default="", help="runs, such as a,b,g, nexmark or q5; default: all"
    )
    parser.add_argument("--rounds", type=int, default=_number("BENCH_ROUNDS", 3))
    parser.add_argument("--scale", type=float, default=float(os.environ.get("BENCH_SCALE", "1")))
    parser.add_argument("--events", type=int, default=_number("BENCH_EVENTS", own.events))
    parser.add_argument("--keys", type=int, default=_number("BENCH_KEYS", own.keys))
    parser.add_argument("--big-keys", type=int, default=_number("BENCH_BIG_KEYS", own.big_keys))
    parser.add_argument("--batch", type=int, default=_number("BENCH_BATCH", own.batch))
    parser.add_argument("--latency-seconds", type=float, default=own.latency_seconds)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--keep", type=Path, help="folder for pipeline files, logs and progress")
    parser.add_argument("--set", dest="conf", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--no-page", action="store_true", help="leave engine/docs as it is")
    given = parser.parse_args(arguments)
    chosen = tuple(name for name in str(given.only).split(",") if name)
    queries = tuple(name for name in NEXMARK_QUERIES if name in chosen)
    unknown = sorted(set(chosen) - set(RUNS) - set(queries) - {"i"})
    if unknown:
        parser.error(f"unknown runs {', '.join(unknown)}; there are {', '.join(RUNS)}")
    if "i" in chosen:
        chosen = (*chosen, "a", "b")
    if queries:
        chosen = tuple(name for name in chosen if name not in queries)
        chosen += () if NEXMARK in chosen else (NEXMARK,)
    floor = () if chosen == (NEXMARK,) else ("floor",)
    sizes = Sizes(
        events=given.events,
        keys=given.keys,
        big_keys=given.big_keys,
        batch=given.batch,
        latency_seconds=given.latency_seconds,
    )
    return Options(
        sizes=scaled(sizes, given.scale),
        only=tuple(run for run in RUNS if not chosen or run in (*chosen, *floor)),
        queries=queries or NEXMARK_QUERIES,
        rounds=given.rounds,
        master=given.master,
        seed=given.seed,
        results=given.results,
        page=None if given.no_page else HERE.parent / "engine" / "docs" / "benchmark.md",
        keep=given.keep,
        conf=tuple(given.conf),
    )


def _number(name: str, default: int) -> int:
    return int(os.environ.get(name, default))

"""What comes out: medians of rounds, ratios to the floor, and how they compare with the goals."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias, cast

from bench.measure.rates import median
from bench.options import CHANGE_RUNS

Tree: TypeAlias = "float | dict[str, Tree]"
"""Numbers by name, to any depth."""

Round = Mapping[str, dict[str, Any]]
"""Run to its numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One promise."""

    what: str
    path: tuple[str, ...]
    """Where the number is, below `runs`."""
    wanted: float
    least: bool = True
    """Whether it must be at least, or at most, what is wanted."""
    over: tuple[str, ...] = ()
    """Where the number is that it is divided by."""


RATE = "records_per_s"

GOALS = (
    Goal(what="(a) of the floor", path=("a", "of_floor"), wanted=0.45),
    Goal(what="(b) of the floor", path=("b", "of_floor"), wanted=0.27),
    Goal(what="(b) of (c)", path=("b", RATE), over=("c", RATE), wanted=0.9),
    Goal(what="(d) of (b)", path=("d", RATE), over=("b", RATE), wanted=0.6),
    Goal(what="(e) of (b)", path=("e", RATE), over=("b", RATE), wanted=0.9),
    Goal(what="(f) of (b)", path=("f", RATE), over=("b", RATE), wanted=0.5),
    Goal(what="(j) of the floor", path=("j", "of_floor"), wanted=0.15),
    Goal(what="(k) of the floor", path=("k", "of_floor"), wanted=0.15),
    Goal(what="(n) of the floor", path=("n", "of_floor"), wanted=0.12),
    Goal(what="(o) rows/s into Postgres, append", path=("o", RATE), wanted=80_000),
    Goal(what="(p) rows/s into Postgres, upsert", path=("p", RATE), wanted=40_000),
    Goal(what="(q) of the floor", path=("q", "of_floor"), wanted=0.20),
    Goal(what="(r) rows/s into ClickHouse's engine", path=("r", RATE), wanted=100_000),
    Goal(what="(s) rows/s through a script, two cores", path=("s", RATE), wanted=100_000),
    Goal(what="(t) rows/s through a handler", path=("t", RATE), wanted=20_000),
    Goal(what="(u) SQLFlow, batches of 5,000, records/s", path=("u", RATE), wanted=300_000),
    Goal(what="(v) SQLFlow, users of Postgres, records/s", path=("v", RATE), wanted=100_000),
    Goal(what="(z) SQLFlow, batches of 100, records/s", path=("z", RATE), wanted=50_000),
    *(
        Goal(what=f"({run}) changes/s, two cores", path=(run, RATE), wanted=200_000)
        for run in CHANGE_RUNS
    ),
    *(
        Goal(
            what=f"({run}) largest Python worker, MiB",
            path=(run, "worker_mb"),
            wanted=700,
            least=False,
        )
        for run in "jklmn"
    ),
    *(
        Goal(
            what=f"({run}) process tree, MiB",
            path=(run, "rss_mb"),
            wanted=(2.0e9 if run in "dfh" else 1.5e9) / 2**20,
            least=False,
        )
        for run in "abedfh"
    ),
    Goal(what="(f) largest Python worker, MiB", path=("f", "worker_mb"), wanted=600, least=False),
    Goal(what="(f) restart, s", path=("f", "restart_s"), wanted=30, least=False),
    Goal(what="(g) p99 of (a), ms", path=("g", "a", "p99_ms"), wanted=150, least=False),
    Goal(what="(w) receiver alone, requests/s", path=("w", "alone_per_s"), wanted=10_000),
    Goal(what="(w) with its pipeline, requests/s", path=("w", "running_per_s"), wanted=3_000),
    Goal(what="(g) p99 of (b), ms", path=("g", "b", "p99_ms"), wanted=220, least=False),
)


def combined(rounds: Sequence[Round]) -> dict[str, Any]:
    """Return medians over rounds; ratios to the floor are taken within a round.

    Rounds are interleaved, so what slows the machine for a while slows both sides of a ratio.
    """
    compared = [_with_ratios(each) for each in rounds]
    names = list(dict.fromkeys(name for each in compared for name in each))
    merged = {name: _medians([each[name] for each in compared if name in each]) for name in names}
    floor = merged.pop("floor", {})
    return {"floor": floor, "runs": merged}


def judged(runs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the goals that were measured, with what came out."""
    found: list[dict[str, Any]] = []
    for goal in GOALS:
        value, over = _at(runs, goal.path), _at(runs, goal.over) if goal.over else 1.0
        if value is None or not over:
            continue
        measured = value / over
        reached = measured >= goal.wanted if goal.least else measured <= goal.wanted
        found.append(
            {
                "goal": goal.what,
                "wanted": f"{'>=' if goal.least else '<='} {goal.wanted:.4g}",
                "measured": round(measured, 3),
                "reached": reached,
            }
        )
    return found


def machine() -> dict[str, Any]:
    """Return what this machine is."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*:\s*(.+)", info)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": model[1] if model else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("pyspark", "duckdb", "pyarrow")},
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def _with_ratios(found: Round) -> dict[str, dict[str, Any]]:
    floor = found.get("floor", {}).get(RATE)
    if not floor:
        return dict(found)
    return {
        name: {**numbers, "of_floor": numbers[RATE] / floor}
        if name != "floor" and RATE in numbers
        else numbers
        for name, numbers in found.items()
    }


def _medians(trees: Sequence[Tree]) -> Any:
    first = trees[0]
    if isinstance(first, dict):
        same = [cast(dict[str, Tree], tree) for tree in trees]
        return {name: _medians([tree[name] for tree in same if name in tree]) for name in first}
    value = median([cast(float, tree) for tree in trees])
    return round(value, 4) if abs(value) < 10 else round(value, 1)


def _at(runs: Mapping[str, Any], path: Sequence[str]) -> float | None:
    at: Any = runs
    for name in path:
        if not isinstance(at, Mapping) or name not in at:
            return None
        at = cast(Any, at[name])
    return float(at)

"""Whether a soak kept its promises: pure sums over its samples."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.measure.rates import median, slope

WARM_UP = 0.1
"""Share of the time that does not count."""

MOST_SLOPE = 0.05
"""Growth of memory in an hour, as a share of what it is."""

MOST_BATCH = 3.0
"""Times the median that the slowest batch may take."""

MOST_GROWTH = 1.25
"""Times its first third that a directory may have in its last third."""

SMALL_MIB = 8.0
"""Directories grow and shrink by this much as files come and go."""

_HOUR = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How things are at one moment; sizes in MiB."""

    at: float
    """Seconds since the feed began."""
    rss: dict[str, float]
    """By process: `driver`, `jvm`, `worker <pid>`."""
    state: float
    """The whole state directory, everything below included."""
    copies: float
    snapshots: float
    spark: float
    """Spark's own checkpoint."""
    lag: int
    waiting: int

    def by_role(self) -> dict[str, float]:
        """Return memory of driver, JVM and all Python workers."""
        found: dict[str, float] = {}
        for name, mib in self.rss.items():
            role = name.partition(" ")[0]
            found[role] = found.get(role, 0.0) + mib
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        sizes = {name: round(mib, 1) for name, mib in self.rss.items()}
        return {**asdict(self), "rss": sizes}


def judge(samples: Sequence[Sample], batches: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return slopes, batch times and verdicts.

    Args:
        samples: In order.
        batches: When each ended (as `Sample.at`), and its milliseconds.
    """
    if len(samples) < 5:
        few = {"promise": "long enough", "measured": f"{len(samples)} samples", "holds": False}
        return {"slopes": {}, "batches": {}, "verdicts": [few]}
    start = samples[-1].at * WARM_UP
    warm = [sample for sample in samples if sample.at >= start]
    spent = [ms for at, ms in batches if at >= start]
    slopes = {name: _slope(warm, name) for name in sorted({r for s in warm for r in s.by_role()})}
    verdicts = [_memory(name, numbers) for name, numbers in slopes.items()]
    verdicts.append(_batches(spent))
    for name in ("state", "copies", "snapshots", "spark"):
        verdicts.append(_directory(name, [getattr(sample, name) for sample in warm]))
    return {
        "slopes": slopes,
        "batches": {
            "count": len(spent),
            "median_ms": round(median(spent), 1) if spent else None,
            "max_ms": round(max(spent), 1) if spent else None,
        },
        "verdicts": verdicts,
    }


def _slope(samples: Sequence[Sample], role: str) -> dict[str, float]:
    points = [(s.at / _HOUR, s.by_role().get(role, 0.0)) for s in samples]
    mean = sum(y for _, y in points) / len(points)
    grows = slope(points)
    return {
        "mib_per_hour": round(grows, 2),
        "mean_mib": round(mean, 1),
        "share_per_hour": round(grows / mean, 4) if mean else 0.0,
    }


def _memory(role: str, numbers: dict[str, float]) -> dict[str, Any]:
    return {
        "promise": f"memory of {role} grows by at most {MOST_SLOPE:.0%} an hour",
        "measured": f"{numbers['mib_per_hour']:+.1f} MiB an hour of {numbers['mean_mib']:.0f} MiB",
        "holds": numbers["share_per_hour"] <= MOST_SLOPE,
    }


def _batches(spent: Sequence[float]) -> dict[str, Any]:
    promise = f"no batch takes more than {MOST_BATCH:g} times the median"
    if not spent:
        return {"promise": promise, "measured": "no batch", "holds": False}
    middle, most = median(spent), max(spent)
    return {
        "promise": promise,
        "measured": f"median {middle:.0f} ms, most {most:.0f} ms, {len(spent)} batches",
        "holds": most <= MOST_BATCH * middle,
    }


def _directory(name: str, sizes: Sequence[float]) -> dict[str, Any]:
    third = max(len(sizes) // 3, 1)
    first, last = max(sizes[:third]), max(sizes[-third:])
    return {
        "promise": f"directory '{name}' does not grow",
        "measured": f"at most {first:.1f} MiB in the first third, {last:.1f} MiB in the last",
        "holds": last <= first * MOST_GROWTH + SMALL_MIB,
    }

"""Verdict: why a pipeline is idle or slow, with the numbers behind it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kaflow_engine.telemetry.progress import Progress
from kaflow_engine.telemetry.steps import STEPS

VerdictKind = Literal[
    "standby",
    "starting",
    "waiting for input",
    "watermark held",
    "source behind",
    "compute bound",
    "state bound",
    "sink bound",
    "retrying",
    "failed",
    "stopped",
]

_BOUND: Mapping[str, tuple[VerdictKind, tuple[str, ...]]] = {
    "source": ("source behind", ("input",)),
    "compute": ("compute bound", ("exchange", "sql")),
    "state": ("state bound", ("state_read", "state_write")),
    "sink": ("sink bound", ("produce", "commit")),
}

HELD_MS = 60_000
"""How far the slowest partition stays behind the newest record before it holds the watermark."""
_SKEWED = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a pipeline is busy with, or waits for."""

    kind: VerdictKind
    why: str
    """One sentence for a person."""
    evidence: Mapping[str, float]

    def __str__(self) -> str:
        return f"{self.kind}: {self.why}"


def judge(at: Progress) -> Verdict:
    """Return the verdict over a pipeline; the first that fits.

    A pipeline with unread records is bound by what its tasks spend most of their time on. One that
    has read everything waits for input, unless rows wait for a watermark that one partition holds
    back.
    """
    lag = sum(at.lag.values())
    evidence = {"lag": float(lag), "busy": round(at.busy, 3)}
    match at.state:
        case "failed":
            return Verdict(kind="failed", why=at.last_error or "no reason given", evidence={})
        case "degraded":
            why = f"{at.failures} in a row: {at.last_error}"
            return Verdict(kind="retrying", why=why, evidence={"failures": float(at.failures)})
        case "stopped":
            return Verdict(kind="stopped", why="it was asked to, or has read all", evidence={})
        case "running":
            if lag:
                return _bound(at, lag, evidence)
            return _held(at, evidence) or Verdict(
                kind="waiting for input",
                why=f"all topics are read; a batch runs {at.busy:.0%} of the time",
                evidence=evidence,
            )
        case "standby":
            why = f"{at.waits_for}; this process takes over when that one ends"
            return Verdict(kind="standby", why=why, evidence={})
        case "starting":
            return Verdict(kind="starting", why="nothing has run yet", evidence=evidence)
        case _:
            return Verdict(
                kind="starting", why=f"{at.state}, {lag} offsets left", evidence=evidence
            )


def _bound(at: Progress, lag: int, evidence: dict[str, float]) -> Verdict:
    total = sum(at.steps.values())
    shares = {step: at.steps.get(step, 0.0) / total if total else 0.0 for step in STEPS}
    evidence |= {step: round(share, 3) for step, share in shares.items()}
    by_group = {group: sum(shares[step] for step in steps) for group, (_, steps) in _BOUND.items()}
    group = max(by_group, key=lambda name: by_group[name])
    kind, steps = _BOUND[group]
    spent = " and ".join(step.replace("_", " ") for step in steps)
    why = f"{lag} offsets are unread; {spent} take {by_group[group]:.0%} of the time of tasks"
    if at.skew is not None and at.skew >= _SKEWED:
        evidence["skew"] = round(at.skew, 3)
        why += f"; one task does {at.skew:.0%} of its stage, as with a hot key"
    return Verdict(kind=kind, why=why, evidence=evidence)


def _held(at: Progress, evidence: dict[str, float]) -> Verdict | None:
    newest = at.holder_newest
    if at.holder is None or newest is None or not at.waiting:
        return None
    behind = None if at.holder_at is None else newest - at.holder_at
    if behind is not None and behind < HELD_MS:
        return None
    topic, partition = at.holder
    place = f"topic {topic} partition {partition}"
    how = "has no record yet" if behind is None else f"is {behind / 1000:.0f} s behind the newest"
    evidence["waiting"] = float(at.waiting)
    if behind is not None:
        evidence["behind_seconds"] = behind / 1000
    return Verdict(
        kind="watermark held",
        why=f"by {place}, which {how}; {at.waiting} rows wait",
        evidence=evidence,
    )

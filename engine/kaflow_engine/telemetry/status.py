"""`/status` and `/health/*`: the state of pipelines as JSON and as probe answers."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from kaflow_engine.telemetry.progress import Progress
from kaflow_engine.telemetry.verdict import judge

Condition = Literal["standby", "starting", "running", "degraded", "failed", "stopped"]

CONDITIONS: tuple[Condition, ...] = get_args(Condition)


def condition(at: Progress) -> Condition:
    """Return the state of a pipeline as an orchestrator knows it; whatever comes before live rows
    is starting.
    """
    match at.state:
        case "standby" | "running" | "degraded" | "failed" | "stopped":
            return at.state
        case _:
            return "starting"


def is_live(pipelines: Sequence[Progress]) -> bool:
    """Tell whether the process does any good: a pipeline has not failed."""
    return not pipelines or any(at.state != "failed" for at in pipelines)


def is_ready(pipelines: Sequence[Progress]) -> bool:
    """Tell whether every pipeline is running."""
    return bool(pipelines) and all(condition(at) == "running" for at in pipelines)


def lag_seconds(at: Progress, topic: str, now: float) -> float | None:
    """Return how old the newest record is that was read of a topic with unread ones.

    Args:
        at: The pipeline.
        topic: One of its topics.
        now: Epoch seconds.

    Returns:
        Seconds; 0 where all is read, None where this process has read nothing of the topic yet.
    """
    if not at.lag.get(topic):
        return 0.0
    newest = at.newest.get(topic)
    return None if newest is None else max(now - newest / 1000, 0.0)


def waiting_seconds(at: Progress) -> float | None:
    """Return the age of the oldest row that waits, in seconds of event time; None: none waits."""
    if not at.waiting or at.waited is None:
        return None
    return max(at.waited / 1000, 0.0)


def status(at: Progress, now: float) -> dict[str, Any]:
    """Return one pipeline as plain data.

    Args:
        at: The pipeline.
        now: Epoch seconds.
    """
    verdict = judge(at)
    return {
        "pipeline": at.pipeline,
        "state": condition(at),
        "doing": at.state,
        "verdict": {"kind": verdict.kind, "why": verdict.why, "evidence": dict(verdict.evidence)},
        "batch": at.batch,
        "batch_records": at.batch_records,
        "batch_ms": round(at.batch_ms, 1),
        "busy": round(at.busy, 3),
        "records_per_second": round(at.records_per_second, 1),
        "lag": {
            topic: {"records": lag, "seconds": _rounded(lag_seconds(at, topic, now))}
            for topic, lag in at.lag.items()
        },
        "watermark": {
            "at": _moment(at.watermark),
            "held_by": None
            if at.holder is None
            else {
                "topic": at.holder[0],
                "partition": at.holder[1],
                "newest": _moment(at.holder_at),
            },
        },
        "clock_ahead_seconds": at.clock_ahead / 1000,
        "waiting": {"rows": at.waiting, "oldest_seconds": _rounded(waiting_seconds(at))},
        "joins": {
            topic: {"rows": rows, "matched": matched}
            for topic, (rows, matched) in at.lookups.items()
        },
        "state_size": {
            operator: {"entries": entries, "bytes": size}
            for operator, (entries, size) in at.sizes.items()
        },
        "checkpoint": at.checkpoint
        and {
            "batch": at.checkpoint.batch,
            "at": _moment(at.checkpoint.created_ms or None),
            "bytes": at.checkpoint.bytes,
            "failures": at.checkpoint.failures,
        },
        "counters": dict(at.counters),
        "delivered": at.delivered,
        "dead_letters": at.dead_letters,
        "failures": at.failures,
        "last_error": at.last_error,
    }


def statuses(pipelines: Mapping[str, Progress], now: float) -> dict[str, Any]:
    """Return all pipelines of a process as plain data."""
    found = list(pipelines.values())
    return {
        "live": is_live(found),
        "ready": is_ready(found),
        "pipelines": [status(at, now) for at in found],
    }


def _moment(milliseconds: int | None) -> str | None:
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return "the end"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)

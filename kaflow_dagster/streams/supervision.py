"""What to do about a pipeline that should be running: one decision from what is known about it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SessionStatus = Literal["waiting", "running", "done", "failed", "cancelled"]
Action = Literal["ok", "launch", "held", "backoff", "crashloop", "drain", "reap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One run of a stream; times are epoch seconds."""

    run_id: str
    status: SessionStatus
    version: str = ""
    """Of the plan that it runs."""
    began: float = 0.0
    heard: float = 0.0
    """When it last said something."""
    ended: float = 0.0
    draining: bool = False
    """It was asked to stop after its batch."""

    @property
    def live(self) -> bool:
        """Tell whether it has not ended."""
        return self.status in ("waiting", "running")


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredState:
    """What should be running."""

    pipeline: str
    version: str
    """Of the plan in the author's file."""
    since: float
    """When supervision was switched on, in epoch seconds: what ended before counts no longer."""
    unfit: str | None = None
    """Why the state does not fit the plan, where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisionLimits:
    """When supervision acts; seconds."""

    silence: float = 60.0
    """A session that says nothing for so long hangs."""
    drain: float = 180.0
    """A session that was asked to stop, and says nothing for so long, hangs."""
    healthy: float = 120.0
    """A session that lived so long did not fail at its start."""
    attempts: int = 5
    """Failures at the start, one after the other, until it is given up."""
    pause: float = 5.0
    """Before the second start after a failure; twice as long before each that follows."""
    longest_pause: float = 300.0
    rotation: float = 86_400.0
    """A session that ran so long is replaced by a new one, which keeps its log short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, and why."""

    action: Action
    reason: str
    run_id: str | None = None
    """The session to drain or to reap."""
    run_key: str | None = None
    """Of the launch: the same for the same predecessor, so that a repeated launch is none."""


def decide(
    sessions: Sequence[Session],
    desired: DesiredState,
    now: float,
    limits: SupervisionLimits | None = None,
) -> Decision:
    """Decide about a pipeline.

    Args:
        sessions: Its sessions, newest first; the last few are enough.
        desired: What should be running.
        now: Epoch seconds.
        limits: When to act.
    """
    limits = limits or SupervisionLimits()
    live = [session for session in sessions if session.live]
    hanging = next((s for s in live if _silent(s, now) > _patience(s, limits)), None)
    if hanging is not None:
        return Decision(
            action="reap",
            reason=f"run {hanging.run_id} has said nothing for {_silent(hanging, now):.0f} s",
            run_id=hanging.run_id,
        )
    if live:
        return _about_live(live[0], desired, now, limits)
    if desired.unfit is not None:
        return Decision(action="held", reason=desired.unfit)
    return _about_next(sessions, desired, now, limits)


def _silent(session: Session, now: float) -> float:
    """Return for how long a session that should speak has not."""
    return now - max(session.heard, session.began) if session.status == "running" else 0.0


def _patience(session: Session, limits: SupervisionLimits) -> float:
    return limits.drain if session.draining else limits.silence


def _about_live(
    session: Session, desired: DesiredState, now: float, limits: SupervisionLimits
) -> Decision:
    if session.status == "waiting":
        return Decision(action="ok", reason=f"run {session.run_id} is starting")
    if session.draining:
        return Decision(action="ok", reason=f"run {session.run_id} finishes its batch")
    if session.version != desired.version and desired.unfit is not None:
        return Decision(action="ok", reason=f"goes on with its old plan: {desired.unfit}")
    if session.version != desired.version:
        reason = "the plan has changed, and its state fits the new one or may be rebuilt"
    elif now - session.began > limits.rotation:
        reason = f"it has run for {(now - session.began) / 3600:.0f} h"
    else:
        return Decision(action="ok", reason=f"run {session.run_id} streams")
    return Decision(action="drain", reason=reason, run_id=session.run_id)


def _about_next(
    sessions: Sequence[Session], desired: DesiredState, now: float, limits: SupervisionLimits
) -> Decision:
    if not sessions:
        return Decision(action="launch", reason="first run", run_key=f"{desired.pipeline}:first")
    last = sessions[0]
    if last.status == "cancelled" and last.ended > desired.since:
        return Decision(
            action="held",
            reason=f"run {last.run_id} was terminated; switch this sensor off and on to resume",
        )
    failures = _failures_at_start(sessions, desired, limits)
    if failures >= limits.attempts:
        return Decision(
            action="crashloop",
            reason=f"{failures} starts have failed, see run {last.run_id}; fix the cause, then "
            "switch this sensor off and on",
        )
    pause = min(limits.pause * 2 ** (failures - 1), limits.longest_pause) if failures else 0.0
    left = last.ended + pause - now
    if left > 0:
        return Decision(
            action="backoff", reason=f"start {failures + 1} of {limits.attempts} in {left:.0f} s"
        )
    return Decision(
        action="launch",
        reason=f"run {last.run_id} has ended: {last.status}",
        run_key=f"{desired.pipeline}:{last.run_id}",
    )


def _failures_at_start(
    sessions: Sequence[Session], desired: DesiredState, limits: SupervisionLimits
) -> int:
    count = 0
    for session in sessions:
        lived = session.ended - session.began
        if session.status != "failed" or session.ended <= desired.since or lived >= limits.healthy:
            break
        count += 1
    return count

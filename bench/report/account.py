"""Whether a run gave what it must: a wrong result has no speed."""

from collections.abc import Mapping

from kaflow_engine.errors import RunError

_KEPT: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys("aopqrs", ("emitted", "filtered")),
    # an update that does not pass leaves as a delete
    "y": ("emitted", "filtered"),
    # clicks that no one follows up wait and expire
    "h": ("emitted", "waiting", "expired"),
    # what tables take
    "m": ("used",),
}
"""Where the driving records of a run may end; elsewhere all are emitted."""


def check_account(run: str, counters: Mapping[str, int]) -> None:
    """Check what became of the driving records of a run.

    Raises:
        RunError: Some went where none should, or nothing came out.
    """
    names = _KEPT.get(run, ("emitted",))
    kept = sum(counters.get(name, 0) for name in names)
    if not counters.get(names[0]) or kept != counters.get("read"):
        about = ", ".join(f"{name} {count:,}" for name, count in sorted(counters.items()))
        raise RunError(f"run {run} did not give what it must", hint=about)

"""Results of checks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaflow_engine.model.checks import Check


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check found."""

    check: Check
    passed: bool
    rows: int
    """That were looked at."""
    failed: int = 0
    """Of these."""
    observed: object = None
    """What an expectation about all rows together saw."""
    sample: tuple[Mapping[str, object], ...] = ()
    """Some rows that failed."""
    words: str | None = None
    """What is expected, as a sentence."""
    error: str | None = None
    """Why the check itself did not work; it has not passed then."""

    @property
    def is_failure(self) -> bool:
        """Whether it fails whoever asked: it did not pass, and is no mere warning."""
        return not self.passed and self.check.severity == "error"

    def data(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "name": self.check.name,
            "passed": self.passed,
            "severity": self.check.severity,
            "expectation": self.check.expectation,
            "arguments": dict(self.check.arguments),
            "rows": self.rows,
            "failed": self.failed,
            "observed": self.observed,
            "sample": [dict(row) for row in self.sample],
            "words": self.words,
            "error": self.error,
        }


def results_of(
    checks: Sequence[Check], answers: Sequence[Mapping[str, Any]], rows: Sequence[int]
) -> tuple[CheckResult, ...]:
    """Return what a child process found, check by check, in so many rows."""
    return tuple(
        CheckResult(
            check=check,
            passed=bool(answer["passed"]),
            rows=number,
            failed=int(answer["failed"]),
            observed=answer["observed"],
            sample=tuple(answer["sample"]),
            words=answer["words"],
            error=answer["error"],
        )
        for check, answer, number in zip(checks, answers, rows, strict=True)
    )

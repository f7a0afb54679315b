"""A failing case as lines of text and as data."""

from collections.abc import Iterator
from itertools import zip_longest
from textwrap import wrap
from typing import Any

from kaflow_engine.testing.cases.cases import CaseResult

NARROWEST = 24
"""Least width of a column."""


def report_lines(result: CaseResult, width: int = 100) -> list[str]:
    """Return what a person reads about a case that failed; columns share `width`."""
    case = result.case
    how = f" (cuts {result.cuts})" if result.cuts != "given" else ""
    lines = [f"FAILED  {case.name}{how}", f"        {case.at}"]
    if result.error is not None:
        lines += [f"  {line}" for line in result.error.splitlines()]
    column = max(NARROWEST, (width - 7) // 2)
    for difference in result.differences:
        lines += ["", f"  {difference.part}"]
        lines += _row(" ", "expected", "actual", column)
        for pair in difference.pairs:
            lines += _row(pair.mark, pair.expected or "", pair.actual or "", column)
    return lines


def result_data(result: CaseResult) -> dict[str, Any]:
    """Return a result as plain data."""
    return {
        "case": result.case.name,
        "file": result.case.at.file,
        "line": result.case.at.line,
        "passed": result.passed,
        "cuts": result.cuts,
        "runs": result.runs,
        "error": result.error,
        "differences": [
            {
                "part": difference.part,
                "rows": [
                    {"expected": p.expected, "actual": p.actual, "equal": p.equal}
                    for p in difference.pairs
                ],
            }
            for difference in result.differences
        ],
    }


def _row(mark: str, left: str, right: str, width: int) -> Iterator[str]:
    parts = zip_longest(_wrapped(left, width), _wrapped(right, width), fillvalue="")
    for number, (one, other) in enumerate(parts):
        yield f"  {mark if number == 0 else ' '} {one:<{width}} | {other}".rstrip(" |")


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width, subsequent_indent="  ", break_on_hyphens=False) or [""]

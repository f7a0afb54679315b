"""A wrong result has no speed."""

import pytest

from bench.report.account import check_account
from kaflow_engine.errors import RunError


@pytest.mark.parametrize(
    ("run", "counters"),
    [
        ("a", {"read": 10, "emitted": 8, "filtered": 2}),
        ("b", {"read": 10, "emitted": 10, "side_read": 5}),
        ("k", {"read": 10, "emitted": 10}),
        ("h", {"read": 10, "emitted": 4, "waiting": 1, "expired": 5, "late": 2}),
    ],
)
def test_good(run: str, counters: dict[str, int]):
    check_account(run, counters)


@pytest.mark.parametrize(
    ("run", "counters"),
    [
        ("a", {}),
        ("a", {"read": 10, "filtered": 10}),
        ("a", {"read": 10, "emitted": 7, "filtered": 2, "dead_letter": 1}),
        ("b", {"read": 10, "emitted": 8, "filtered": 2}),
        ("d", {"read": 10, "emitted": 9, "waiting": 1}),
        ("d", {"read": 10, "emitted": 9, "expired": 1}),
        ("h", {"read": 10, "emitted": 9, "skipped": 1}),
    ],
)
def test_bad(run: str, counters: dict[str, int]):
    with pytest.raises(RunError, match=f"run {run} did not give what it must"):
        check_account(run, counters)

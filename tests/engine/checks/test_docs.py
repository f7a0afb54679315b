"""Pages about checks say what was found, and ask the network for nothing."""
# pyright: basic

import re
from datetime import UTC, datetime

from kaflow_engine.checks.docs import write_docs
from kaflow_engine.checks.results import CheckResult
from kaflow_engine.model.checks import Check

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def result(name, passed, severity="error", **more):
    check = Check(name=name, expectation="expect_x", arguments={"column": "<a>"}, severity=severity)
    return CheckResult(check=check, passed=passed, rows=8, **more)


def test_pages(tmp_path):
    folder = tmp_path / "new" / "docs"
    write_docs(folder, "other", "topic 'o'", NOON, [result("fine", True)])
    bad = result("bad", False, failed=2, sample=({"id": "<b>", "n": 1}, {"id": None, "n": 2}))
    results = [
        result("fine", True, words="a must be <b>", observed=8),
        bad,
        result("odd", False, "warn"),
        result("broken", False, error="no column 'x'"),
    ]
    page = write_docs(folder, "orders", "table 'orders', 2026-01-01", NOON, results)
    text = page.read_text()
    verdicts = re.findall(r'class="verdict (\w+)">\w+</span> (\w+)', text)
    assert verdicts == [("ok", "fine"), ("failed", "bad"), ("warn", "odd"), ("failed", "broken")]
    for words in (
        "2 of 8 rows failed (25%)",
        "<tr><td>&lt;b&gt;</td><td>1</td></tr>",
        "a must be &lt;b&gt;",
        "observed: 8",
        "no column &#x27;x&#x27;",
        "expect_x(column: &lt;a&gt;)",
        "1 of 4 checks passed, 2026-01-01T12:00:00+00:00",
    ):
        assert words in text
    index = (folder / "index.html").read_text()
    assert re.findall(r'href="([^"]*)"', index) == ["orders.html", "other.html"]
    assert "1 of 4 checks passed" in index
    for html in (text, index):
        assert not re.search(r"https?:|<script|<link|@import|url\(|src=", html)

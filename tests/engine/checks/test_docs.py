"""Pages about checks say what was found, and ask the network for nothing."""
# pyright: basic

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

from kaflow_engine.checks.docs import page_of, write_docs
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


HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;/td>"


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = set()

    def handle_starttag(self, tag, attrs):
        self.found |= {tag, *(f"{tag} {name}" for name, _ in attrs)}


def test_no_text_becomes_markup(tmp_path):
    check = Check(
        name=HOSTILE,
        expectation=HOSTILE,
        arguments={HOSTILE: HOSTILE, "l": [HOSTILE]},
        description=HOSTILE,
    )
    bad = CheckResult(
        check=check,
        passed=False,
        rows=2,
        failed=1,
        sample=({HOSTILE: HOSTILE, "n": [HOSTILE]},),
        words=HOSTILE,
        error=HOSTILE,
    )
    seen = replace(bad, failed=0, observed=[HOSTILE], sample=())
    write_docs(tmp_path, "a", HOSTILE, NOON, [bad, seen])
    (tmp_path / "javascript:alert(1).html").write_text(f'<b id="summary">&quot;{HOSTILE}')
    write_docs(tmp_path, "b", HOSTILE, NOON, [bad, seen])
    pages = [page_of(HOSTILE, HOSTILE, NOON, [bad, seen])]
    pages += [(tmp_path / f"{name}.html").read_text() for name in ("a", "b", "index")]
    for page in pages:
        tags = Tags()
        tags.feed(page)
        assert tags.found <= {
            *("html", "html lang", "head", "meta", "meta charset", "title", "style", "body", "h1"),
            *("h2", "p", "p class", "span", "span id", "span class", "small", "table", "tr", "th"),
            *("td", "ul", "li", "a", "a href"),
        }
        assert 'href="javascript:' not in page

"""Data docs: HTML pages about checks, without scripts, fonts or network access."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from urllib.parse import quote

from kaflow_engine.checks.results import CheckResult

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:64rem;padding:0 1rem;color:#222}
h1{font-size:1.4rem;margin-bottom:0}h2{font-size:1.05rem;margin:2rem 0 .3rem}
p{margin:.3rem 0}small,.about{color:#666}
table{border-collapse:collapse;margin:.5rem 0;font-size:.9rem}
td,th{border:1px solid #ddd;padding:.2rem .6rem;text-align:left;vertical-align:top}
th{background:#f5f5f5}
.ok{color:#17713a}.warn{color:#96610a}.failed{color:#b3261e}.verdict{font-weight:600}
"""


def write_docs(
    folder: Path, name: str, what: str, at: datetime, results: Sequence[CheckResult]
) -> Path:
    """Write the page of a pipeline, and an index of all pages in the folder; return the page.

    Args:
        folder: Made where it does not exist.
        name: Of the pipeline.
        what: What was looked at, for a sentence.
        at: When.
        results: What was found.
    """
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{name}.html"
    page.write_text(page_of(name, what, at, results), encoding="utf-8")
    others = sorted(each for each in folder.glob("*.html") if each.name != "index.html")
    links = "".join(
        f'<li><a href="{quote(each.name)}">{escape(each.stem)}</a> '
        f"<small>{_summary_in(each)}</small></li>"
        for each in others
    )
    index = _document("Checks", f"<h1>Checks</h1><ul>{links}</ul>")
    folder.joinpath("index.html").write_text(index, encoding="utf-8")
    return page


def page_of(name: str, what: str, at: datetime, results: Sequence[CheckResult]) -> str:
    """Return the page of a pipeline."""
    rows = max((result.rows for result in results), default=0)
    passed = sum(result.passed for result in results)
    summary = f"{passed} of {len(results)} checks passed, {at.isoformat(timespec='seconds')}"
    parts = [
        f"<h1>{escape(name)}</h1>",
        f'<p class="about">{escape(what)}: {rows} rows; <span id="summary">{summary}</span></p>',
        *(_part(result) for result in results),
    ]
    return _document(name, "\n".join(parts))


def _part(result: CheckResult) -> str:
    verdict = "ok" if result.passed else "failed" if result.is_failure else "warn"
    arguments = ", ".join(f"{key}: {value}" for key, value in result.check.arguments.items())
    lines = [
        f'<h2><span class="verdict {verdict}">{verdict}</span> {escape(result.check.name)}</h2>',
        f"<p>{escape(result.words or '')}</p>",
        f"<p><small>{escape(result.check.expectation)}({escape(arguments)})</small></p>",
    ]
    if result.error is not None:
        lines.append(f"<p>{escape(result.error)}</p>")
    if result.failed:
        share = 100 * result.failed / result.rows
        lines.append(f"<p>{result.failed} of {result.rows} rows failed ({share:.3g}%)</p>")
    elif result.observed is not None:
        lines.append(f"<p>observed: {escape(str(result.observed))}</p>")
    if result.sample:
        lines.append(_table(result.sample))
    return "\n".join(lines)


def _table(rows: Sequence[Mapping[str, object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row.values()) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _summary_in(page: Path) -> str:
    found = re.search(r'id="summary">([^<]*)<', page.read_text(encoding="utf-8"))
    return found[1] if found else ""


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f"</title><style>{_STYLE}</style></head>\n<body>{body}</body></html>\n"
    )

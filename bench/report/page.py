"""Draws results: a page with a table, and a plot beside it."""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from bench.report.nexmark import nexmark_section
from bench.report.sections import keeping_sections, table, with_section

TITLES: Mapping[str, str] = {
    "floor": "Spark reads the topic and discards it",
    "a": "(a) filter and project, JSON",
    "b": "(b) join with a dimension, exactly once",
    "c": "(c) the same, at least once",
    "d": "(d) smart, half of the profiles come late",
    "e": "(e) (b) with Avro in and out",
    "f": "(f) (b) with a large dimension",
    "h": "(h) join of two event streams, TTL 10 min",
    "j": "(j) count and sum by key, each batch what has changed",
    "k": "(k) (j) in windows of a minute, each once",
    "l": "(l) (k) in windows of 5 minutes, one each minute, a tenth of the keys",
    "m": "(m) a table joined to a table that changes with each record",
    "n": "(n) join with a dimension, count and sum by its key",
    "o": "(o) (a) into Postgres, append",
    "p": "(p) (a) into Postgres, upsert by 200,000 keys",
    "q": "(q) (a) into Parquet files",
    "r": "(r) (a) into ClickHouse's engine behind HTTP",
    "s": "(s) each row through a script",
    "t": "(t) each row through an HTTP service",
    "u": "(u) SQLFlow: count and sum, batches of 5,000",
    "v": "(v) SQLFlow: each message with its user of Postgres",
    "x": "(x) changes in Avro: project",
    "y": "(y) changes in Avro: filter",
    "z": "(z) SQLFlow: count and sum, batches of 100",
}

ELSEWHERE: Mapping[str, str] = {
    "u": "SQLFlow's engine in Python, on two cores, without Kafka, batches of 5,000: 49,000 "
    "messages/s; its authors, batches of 1,000: 45,000",
    "v": "SQLFlow's engine in Python, the same way: 15,400 messages/s; its authors: 13,000",
    "x": "the authors of Streamling, on 8 processors, without output: 107,900 records/s",
}
"""By run, what others do of the same."""

PLOT = "benchmark.svg"
_WIDTH, _BAR, _GAP, _LEFT = 760, 22, 10, 300


def write_page(result: Mapping[str, Any], page: Path) -> None:
    """Write the page, and the plot beside it; of Nexmark alone only its section."""
    page.parent.mkdir(parents=True, exist_ok=True)
    known = page.read_text("utf-8") if page.exists() else ""
    if known and not _rates(result) and (found := nexmark_section(result)):
        page.write_text(with_section(known, found), encoding="utf-8")
        return
    page.write_text(keeping_sections(markdown(result), known), encoding="utf-8")
    page.with_name(PLOT).write_text(plot(result), encoding="utf-8")


def markdown(result: Mapping[str, Any]) -> str:
    """Return the page of one result."""
    sizes, machine = result["sizes"], result["machine"]
    lines = [
        "# Benchmark",
        "",
        "Written by `make bench` from its results; how to repeat it, and what it does not show,",
        "stands in `bench/README.md`.",
        "",
        f"{result['date']}: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gib']:g} GiB, {machine['system']}, Python {machine['python']}, "
        + ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
        + f". {result['master']}, broker on the same machine, medians of {result['rounds']} "
        f"interleaved rounds, {sizes['events']:,} events of about 100 bytes on 4 partitions, "
        f"{sizes['keys']:,} keys ((f): {sizes['big_keys']:,}), {sizes['batch']:,} records a batch.",
        "",
        f"![Records per second]({PLOT})",
        "",
        *table(
            ("run", "records/s", "of the floor", "ms a batch", "tree MiB", "worker MiB"),
            _throughput_rows(result),
        ),
        *_elsewhere(result["runs"]),
        *_large(result["runs"].get("f", {})),
        *_requests(result["runs"].get("w", {})),
        *_latencies(result["runs"].get("g", {})),
        *nexmark_section(result),
        *_cpu(result["runs"]),
        *_shares(result["runs"]),
        "## Goals",
        "",
        *table(
            ("goal", "wanted", "measured", "reached"),
            [
                (g["goal"], g["wanted"], f"{g['measured']:,g}", "yes" if g["reached"] else "**no**")
                for g in result["goals"]
            ],
        ),
    ]
    return "\n".join(lines).rstrip() + "\n"


def plot(result: Mapping[str, Any]) -> str:
    """Return a bar chart of records per second, as SVG."""
    bars = _rates(result)
    most = max((rate for _, rate in bars), default=1.0) or 1.0
    height = len(bars) * (_BAR + _GAP) + _GAP
    room = _WIDTH - _LEFT - 90
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]
    for i, (name, rate) in enumerate(bars):
        top = _GAP + i * (_BAR + _GAP)
        long = round(rate / most * room, 1)
        colour = "#b8b8b8" if name == "floor" else "#2f6f9f"
        parts += [
            f'<text x="{_LEFT - 8}" y="{top + 16}" text-anchor="end">{escape(TITLES[name])}</text>',
            f'<rect x="{_LEFT}" y="{top}" width="{long}" height="{_BAR}" fill="{colour}"/>',
            f'<text x="{_LEFT + long + 6}" y="{top + 16}">{rate / 1000:,.0f}K/s</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def _rates(result: Mapping[str, Any]) -> list[tuple[str, float]]:
    runs = {"floor": result["floor"], **result["runs"]}
    return [
        (name, runs[name]["records_per_s"])
        for name in TITLES
        if "records_per_s" in runs.get(name, {})
    ]


def _throughput_rows(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    runs = {"floor": result["floor"], **result["runs"]}
    rows: list[tuple[str, ...]] = []
    for name, rate in _rates(result):
        numbers = runs[name]
        rows.append(
            (
                TITLES[name],
                f"{rate:,.0f}",
                f"{numbers['of_floor']:.2f}" if "of_floor" in numbers else "",
                f"{numbers['batch_ms']:,.0f}",
                f"{numbers['rss_mb']:,.0f}" if "rss_mb" in numbers else "",
                f"{numbers['worker_mb']:,.0f}" if "worker_mb" in numbers else "",
            )
        )
    return rows


def _elsewhere(runs: Mapping[str, Any]) -> list[str]:
    said = [f"- ({run}) {words}." for run, words in ELSEWHERE.items() if run in runs]
    return ["Others, of the same work, as far as it is known:", "", *said, ""] if said else []


def _large(numbers: Mapping[str, Any]) -> list[str]:
    lines: list[str] = []
    if "load_records_per_s" in numbers:
        lines.append(f"(f) loads its dimension at {numbers['load_records_per_s']:,.0f} records/s.")
    if "restart_s" in numbers:
        lines.append(
            f"From starting its process again to the first new row: {numbers['restart_s']:.1f} s."
        )
    return [*lines, ""] if lines else []


def _requests(numbers: Mapping[str, Any]) -> list[str]:
    if not numbers:
        return []
    return [
        f"(w) A webhook answers {numbers['alone_per_s']:,.0f} requests/s alone, and "
        f"{numbers['running_per_s']:,.0f} with its pipeline, each when it is on the disk.",
        "",
    ]


def _latencies(numbers: Mapping[str, Any]) -> list[str]:
    if not numbers:
        return []
    rows = [
        (TITLES[name], *(f"{each[key]:,.0f}" for key in ("p50_ms", "p95_ms", "p99_ms")))
        for name, each in numbers.items()
    ]
    return [
        "## Latency at 1,000 records/s",
        "",
        "From producing a record to reading its row with `isolation.level=read_committed`, ms.",
        "",
        *table(("run", "p50", "p95", "p99"), rows),
    ]


def _cpu(runs: Mapping[str, Any]) -> list[str]:
    found = {name: run["cpu_s_per_million"] for name, run in runs.items() if name in TITLES
             and "cpu_s_per_million" in run}  # fmt: skip
    if not found:
        return []
    roles = list(next(iter(found.values())))
    rows = [(name, *(f"{each[role]:.2f}" for role in roles)) for name, each in found.items()]
    return ["## CPU seconds for a million records", "", *table(("run", *roles), rows)]


def _shares(runs: Mapping[str, Any]) -> list[str]:
    found = {name: runs[name]["shares"] for name in TITLES if "shares" in runs.get(name, {})}
    if not found:
        return []
    steps = list(next(iter(found.values())))
    rows = [(name, *(f"{each[step]:.0%}" for step in steps)) for name, each in found.items()]
    return [
        "## Where a batch's time goes",
        "",
        "Share of the time of all cores, from one commit to the next.",
        "",
        *table(("run", *(step.replace("_", " ") for step in steps)), rows),
    ]

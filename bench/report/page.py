"""Draws results: a page with a table, and a plot beside it."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

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

NEXMARK_TITLES: Mapping[str, str] = {
    "q0": "pass through",
    "q1": "prices in another currency",
    "q2": "bids on some auctions",
    "q3": "auctions ⋈ persons of three states",
    "q4": "average of the highest bids, by category",
    "q5": "auctions with the most bids, hop 10 s / 2 s",
    "q7": "highest bid of 10 s",
    "q8": "who registered and sold within 10 s",
    "q11": "bids of a session, gap 10 s",
    "q12": "bids of 10 s of Kafka's time, by bidder",
    "q13": "bids ⋈ a table that stands still",
    "q14": "expressions and a filter",
    "q16": "statistics of a channel and day, distinct counts",
    "q17": "statistics of an auction and day",
    "q18": "last bid of each bidder and auction",
    "q20": "bids ⋈ auctions of one category",
}

PEERS_HEADING = "## Beside other engines"
PLOT = "benchmark.svg"
_WIDTH, _BAR, _GAP, _LEFT = 760, 22, 10, 300


def write_page(result: Mapping[str, Any], page: Path) -> None:
    """Write the page, and the plot beside it."""
    page.parent.mkdir(parents=True, exist_ok=True)
    known = page.read_text("utf-8") if page.exists() else ""
    _, heading, rest = known.partition(PEERS_HEADING)
    beside = (heading + rest).splitlines()
    page.write_text(with_peers(markdown(result), beside), encoding="utf-8")
    page.with_name(PLOT).write_text(plot(result), encoding="utf-8")


def with_peers(page: str, lines: Sequence[str]) -> str:
    """Return a page with another section of peers, which is its last one."""
    own = page.partition(PEERS_HEADING)[0].rstrip()
    return "\n".join([own, "", *lines]).rstrip() + "\n"


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
        *_large(result["runs"].get("f", {})),
        *_requests(result["runs"].get("w", {})),
        *_latencies(result["runs"].get("g", {})),
        *_nexmark(result["runs"].get("nexmark", {})),
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


def _nexmark(numbers: Mapping[str, Any]) -> list[str]:
    if not numbers:
        return []
    rows = [
        (
            name,
            NEXMARK_TITLES[name],
            f"{each['records_per_s']:,.0f}",
            f"{each['rows']:,.0f}",
            f"{each['rss_mb']:,.0f}",
            *(f"{each[key]:,.0f}" if key in each else "" for key in ("p99_ms", "batch_p99_ms")),
        )
        for name, each in numbers.items()
    ]
    return [
        "## Nexmark",
        "",
        "Exactly once, from Kafka to Kafka; each result was compared with that of DuckDB over",
        "the same events. Of 50 events one is a person, three are auctions and 46 are bids, each",
        "kind in a topic of its own, and records are those that a query reads: q3 and q8 read no",
        "bids. At 1,000 events/s latency is from an event to the row that it is the newest event",
        "of, read with `isolation.level=read_committed`; rows of windows wait for their end, so",
        "that q5, q7, q8, q11 and q12 have the time of a batch instead.",
        "",
        *table(
            ("query", "what", "records/s", "rows", "tree MiB", "p99, ms", "p99 of a batch, ms"),
            rows,
        ),
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


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, whose numbers stand on the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return [*("| " + " | ".join(line) + " |" for line in lines), ""]

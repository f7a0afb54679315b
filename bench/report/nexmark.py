"""The section of Nexmark on the benchmark's page."""

from collections.abc import Mapping
from typing import Any

from bench.report.sections import NEXMARK_HEADING, table

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


def nexmark_section(result: Mapping[str, Any]) -> list[str]:
    """Return the lines; none where it was not measured."""
    numbers = result["runs"].get("nexmark")
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
    machine, sizes = result["machine"], result["sizes"]
    return [
        NEXMARK_HEADING,
        "",
        "Exactly once, from Kafka to Kafka; each result was compared with that of DuckDB over",
        "the same events. Of 50 events one is a person, three are auctions and 46 are bids, each",
        "kind in a topic of its own, and records are those that a query reads: q3 and q8 read no",
        "bids. At 1,000 events/s latency is from an event to the row that it is the newest event",
        "of, read with `isolation.level=read_committed`; rows of windows wait for their end, so",
        "that q5, q7, q8, q11 and q12 have the time of a batch instead.",
        "",
        f"{result['date']}: {machine['cpu']}, {machine['cores']} cores, {result['master']}, "
        f"broker on the same machine, medians of {result['rounds']} rounds, half of "
        f'{sizes["events"]:,} events. Again: `make bench ARGS="--only nexmark"`.',
        "",
        *table(
            ("query", "what", "records/s", "rows", "tree MiB", "p99, ms", "p99 of a batch, ms"),
            rows,
        ),
    ]

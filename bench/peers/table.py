"""The table of a comparison, as a section of the benchmark's page."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.measure.rates import median
from bench.peers.jobs import PEERS
from bench.peers.rounds import ENGINES, KAFLOW
from bench.peers.works import WORKS
from bench.report.sections import PEERS_HEADING, table

_DECISION = "decisions/0113-peers-are-measured-from-outside.md"
_TITLES = {KAFLOW: "kaflow", **{peer.name: peer.title for peer in PEERS}}

_LEAST = (
    ("p50 (ms)", ("latency_ms", "p50"), ",.0f"),
    ("p99 (ms)", ("latency_ms", "p99"), ",.0f"),
    ("the first output (s)", ("first_output_s",), ".1f"),
    ("memory (MiB)", ("rss_mb",), ",.0f"),
)
"""What is better the less it is."""


def section(result: Mapping[str, Any]) -> list[str]:
    """Return the section of one result: medians of its rounds, ratios taken within a round."""
    rounds: Sequence[Mapping[str, Any]] = result["rounds"]

    def of(*path: str) -> float | None:
        found = [value for each in rounds if (value := _at(each, path)) is not None]
        return median(found) if found else None

    rates = [f"{work.upper()}, records/s" for work in WORKS]
    rows = [
        (
            _TITLES[engine],
            *(_shown(of(work, engine), ",.0f") for work in WORKS),
            *(_shown(of("latency_ms", engine, name), ",.0f") for name in ("p50", "p99")),
            _shown(of("first_output_s", engine), ".1f"),
            _shown(of("rss_mb", engine), ",.0f"),
        )
        for engine in ENGINES
    ]
    shares = {(w, peer.title): _ratio(rounds, w, peer.name) for w in WORKS for peer in PEERS}
    ratios = [f"{work.upper()} {share:.2f} of {title}" for (work, title), share in shares.items()]
    lost = [
        f"{work.upper()} is {share:.2f} of {title}"
        for (work, title), share in shares.items()
        if share < 1
    ]
    lost += [
        f"{what} is {format(ours, form)}, and {format(theirs, form)} with {peer.title}"
        for what, path, form in _LEAST
        for peer in PEERS
        if (ours := of(path[0], KAFLOW, *path[1:])) is not None
        and (theirs := of(path[0], peer.name, *path[1:])) is not None
        and ours > theirs
    ]
    machine, options = result["machine"], result["options"]
    return [
        PEERS_HEADING,
        "",
        "Written by `make bench-peers`; how it is measured stands in `bench/README.md`.",
        "",
        f"{result['date']}: {machine['cpu']}, {machine['cores']} cores, broker on the same "
        f"machine, medians of {len(rounds)} interleaved rounds, {options['events']:,} records of "
        f"about 100 bytes on 4 partitions, {options['keys']:,} keys. W1 filters and projects, W2 "
        "joins with a dimension, W3 counts by key in windows; exactly once everywhere. p50 and "
        "p99: latency of W2 at 1,000 records/s, in ms.",
        "",
        *table(("", *rates, "p50", "p99", "first output, s", "tree MiB"), rows),
        f"kaflow within the same round: {', '.join(ratios)}.",
        "",
        f"Where kaflow loses, by these medians: {'; '.join(lost) or 'nowhere'}.",
        "",
        "In W2 Flink SQL keeps clicks on the heap for 30 s, as its join wants them, and writes "
        f"them with a checkpoint each second ([decision 113]({_DECISION})). In W3 Kafka Streams "
        "writes a count whenever it changes, as it cannot know that no partition brings earlier "
        "clicks; kaflow and Flink SQL write it when the watermark closes its window.",
        "",
    ]


def _ratio(rounds: Sequence[Mapping[str, Any]], work: str, peer: str) -> float:
    return median([each[work][KAFLOW] / each[work][peer] for each in rounds])


def _at(tree: Any, path: Sequence[str]) -> float | None:
    for name in path:
        if name not in tree:
            return None
        tree = tree[name]
    return float(tree)


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)

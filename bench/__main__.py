"""`python -m bench`: fill topics, take the runs in interleaved rounds, write down what came out."""

import json
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.options import CHANGE_RUNS, Options, read_options
from bench.report.page import write_page
from bench.report.results import combined, judged, machine
from bench.runs import Runs
from kaflow_engine.errors import KaflowError
from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.registry import SchemaRegistry


def run_benchmark(options: Options) -> dict[str, Any]:
    """Measure, and return the results."""
    about = machine()
    began = time.monotonic()
    rounds: list[dict[str, dict[str, Any]]] = []
    failures: list[str] = []
    with ExitStack() as resources:
        scratch = resources.enter_context(TemporaryDirectory(prefix="kaflow-bench-"))
        broker = resources.enter_context(Broker())
        registry = None
        if {"e", *CHANGE_RUNS} & {*options.only}:
            registry = resources.enter_context(SchemaRegistry()).url
        folder = options.keep or Path(scratch)
        runs = Runs(options=options, broker=broker, registry=registry, folder=folder, say=_say)
        _say(f"filling topics for {', '.join(options.only)}")
        runs.fill()
        _say(f"filled after {time.monotonic() - began:.0f} s")
        for number in range(1, options.rounds + 1):
            runs.round = number
            found: dict[str, dict[str, Any]] = {}
            for run in options.only:
                try:
                    found[run] = runs.take(run)
                except (KaflowError, ValueError) as error:  # the others are still worth having
                    failures.append(f"round {number}, {run}: {error}")
                    _say(failures[-1])
                else:
                    _say(f"round {number}, {run}: {_short(found[run])}")
            rounds.append(found)
    result: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ"),
        "machine": about,
        "master": options.master,
        "rounds": options.rounds,
        "seconds": round(time.monotonic() - began),
        "sizes": asdict(options.sizes),
        **combined(rounds),
    }
    # the shares of steps are a table of their own: run i
    result["runs"]["i"] = {
        name: numbers["shares"] for name, numbers in result["runs"].items() if "shares" in numbers
    }
    return {**result, "goals": judged(result["runs"]), "failures": failures, "all_rounds": rounds}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark and write its results."""
    options = read_options(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    if options.keep is not None:
        options = replace(options, keep=options.keep.absolute())
    try:
        result = run_benchmark(options)
    except KaflowError as error:
        _say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        _say("stopped; nothing is left running, and nothing was written")
        return 130
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / f"{result['date']}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.page is not None and not result["failures"]:
        write_page(result, options.page)
    for goal in result["goals"]:
        mark = "reached" if goal["reached"] else "MISSED "
        _say(f"{mark} {goal['goal']}: {goal['measured']:g} (wanted {goal['wanted']})")
    _say(f"written to {path}")
    return 1 if result["failures"] else 0


def _short(numbers: dict[str, Any]) -> str:
    if "records_per_s" in numbers:
        more = f", restart {numbers['restart_s']:.1f} s" if "restart_s" in numbers else ""
        return f"{numbers['records_per_s']:,.0f} records/s{more}"
    if "alone_per_s" in numbers:
        alone, running = numbers["alone_per_s"], numbers["running_per_s"]
        return f"{alone:,.0f} requests/s alone, {running:,.0f} with the pipeline"
    measured = {name: each for name, each in numbers.items() if "p99_ms" in each}
    return ", ".join(f"{name} p99 {each['p99_ms']:.0f} ms" for name, each in measured.items())


def _say(text: str) -> None:
    sys.stderr.write(f"[{time.strftime('%H:%M:%S')}] {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main())

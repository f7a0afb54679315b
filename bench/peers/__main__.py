"""`python -m bench.peers`: the product beside Kafka Streams and Flink SQL, in the same rounds."""

import json
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.peers.jobs import Jdk, find_jdk
from bench.peers.rounds import PeerOptions, Rounds
from bench.peers.table import section
from bench.report.results import machine
from bench.report.sections import with_section
from kaflow_engine.errors import KaflowError
from kaflow_engine.testing.services.broker import Broker

_BENCH = Path(__file__).parent.parent
_WHOLE = 0.25
_BATCH = 200_000
"""With less than that share of the events, our batches are smaller, so that as many are seen."""
_PAGE = _BENCH.parent / "engine" / "docs" / "benchmark.md"


def compare(options: PeerOptions, jdk: Jdk, folder: Path) -> dict[str, Any]:
    """Measure, and return the result.

    Raises:
        KaflowError: An engine failed, or its rows are not those that must come.
    """
    about = machine()
    with Broker() as broker:
        rounds = Rounds(options=options, broker=broker, jdk=jdk, folder=folder, say=_say)
        rounds.prepare()
        _say("filled")
        found = [rounds.take(number) for number in range(1, options.rounds + 1)]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ"),
        "machine": about,
        "options": asdict(options),
        "rounds": found,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and write the result."""
    own = PeerOptions()
    parser = ArgumentParser(
        prog="bench-peers", description="Kafka Streams and Flink SQL beside us."
    )
    parser.add_argument("--rounds", type=int, default=own.rounds)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--latency-seconds", type=float, default=own.latency_seconds)
    parser.add_argument("--master", default=own.master)
    parser.add_argument("--seed", type=int, default=own.seed)
    parser.add_argument("--results", type=Path, default=_BENCH / "results")
    parser.add_argument("--keep", type=Path, help="folder for files, logs and states of the runs")
    parser.add_argument("--no-page", action="store_true", help="leave engine/docs as it is")
    given = parser.parse_args(arguments)
    options = PeerOptions(
        events=max(int(own.events * given.scale), 1),
        keys=max(int(own.keys * min(given.scale / _WHOLE, 1)), 1),
        batch=None if given.scale >= _WHOLE else max(int(_BATCH * given.scale / _WHOLE), 1),
        rounds=given.rounds,
        latency_seconds=given.latency_seconds,
        master=given.master,
        seed=given.seed,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    try:
        jdk = find_jdk()
        with ExitStack() as resources:
            scratch = resources.enter_context(TemporaryDirectory(prefix="kaflow-peers-"))
            folder = given.keep.absolute() if given.keep else Path(scratch)
            result = compare(options, jdk, folder)
    except KaflowError as error:
        _say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        _say("stopped; nothing is left running, and nothing was written")
        return 130
    lines = section(result)
    given.results.mkdir(parents=True, exist_ok=True)
    path = given.results / f"peers-{result['date']}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if not given.no_page:
        page = _PAGE.read_text("utf-8") if _PAGE.exists() else "# Benchmark\n"
        _PAGE.write_text(with_section(page, lines), encoding="utf-8")
    _say("\n".join(lines[2:]))
    _say(f"written to {path}")
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"[{time.strftime('%H:%M:%S')}] {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    raise SystemExit(main())

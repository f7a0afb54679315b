"""`python -m bench.troubles`: five pipelines in trouble, and what is said of each.

A sink that forces every write to disk, a topic without new records beside one with many, a key that
has all records, a record that is broken, and a webhook that no one calls any more.
"""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from types import MappingProxyType
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from bench.measure.product import Product
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.errors import RunError
from kaflow_engine.telemetry.verdict import VerdictKind
from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.child import free_ports

RECORDS = 6_000
"""Of the topics that are read for longer than a moment."""
_MOST = 400
_COLD = 3
"""First batches of a pipeline, which start processes and open producers."""
_PATIENCE_S = 300.0
_START_MS = 1_767_225_600_000
_HOUR_MS = 3_600_000

Rows = Iterator[tuple[str, int, dict[str, Any] | None]]
"""Topic, partition, value; None is a broken one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One pipeline in trouble."""

    name: str
    expected: VerdictKind
    sql: str
    output: str = "key: id"
    more: str = ""
    """More lines of the pipeline file."""
    while_behind: bool = False
    """The verdict is that of most batches with unread records; else the last one."""


TROUBLES = (
    Trouble(
        name="slow_sink",
        expected="sink bound",
        sql="SELECT id, at FROM sales",
        more="topics: {sales: {columns: {id: VARCHAR, at: BIGINT}}}",
        while_behind=True,
    ),
    Trouble(
        name="idle_topic",
        expected="watermark held",
        sql="SELECT c.id, c.at, r.at AS returned FROM calls c JOIN returns r ON c.id = r.id",
        more="""
            topics:
              calls: {columns: {id: VARCHAR, at: BIGINT}, event_time: at}
              returns: {columns: {id: VARCHAR, at: BIGINT}, event_time: at, idle_timeout: 1h}
            state: {events: {default_ttl: 1d}}
            emission: {type: smart}""",
    ),
    Trouble(
        name="hot_key",
        expected="compute bound",
        sql="SELECT c.id, c.at, v.at AS seen FROM clicks c JOIN views v ON c.id = v.id "
        "WHERE sqrt(c.at + v.at) * sin(c.at) > 1e15",
        more="""
            topics:
              clicks: {columns: {id: VARCHAR, at: BIGINT}, event_time: at}
              views: {columns: {id: VARCHAR, at: BIGINT}, event_time: at}
            state: {events: {default_ttl: 1d}}""",
        while_behind=True,
    ),
    Trouble(
        name="broken_record",
        expected="failed",
        sql="SELECT id, at FROM orders",
        more="topics: {orders: {columns: {id: VARCHAR, at: BIGINT}, on_error: fail}}",
    ),
    Trouble(
        name="hooks",
        expected="waiting for input",
        sql="SELECT id, at FROM later",
        more="""
            sources:
              called:
                type: webhook
                listen: "127.0.0.1:PORT"
                columns: {id: VARCHAR, at: BIGINT}
            relations:
              later:
                type: script
                from: called
                script: function process(row) { row.at += 1n; return row }""",
    ),
)

_TOPICS = ("sales", "calls", "returns", "clicks", "views", "orders")
_SLOW = {"flush.messages": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was said of a pipeline in trouble."""

    trouble: Trouble
    verdict: str
    status: Mapping[str, Any]
    """Its last status with that verdict."""

    @property
    def right(self) -> bool:
        """Whether the verdict is the one that fits."""
        return self.verdict == self.trouble.expected


def main() -> int:
    """Run all, print what was said of each, and end with 1 where it does not fit."""
    with TemporaryDirectory(prefix="kaflow-troubles-") as folder:
        findings = run_troubles(Path(folder))
    for found in findings:
        verdict = found.status["verdict"]
        lines = [
            f"{found.trouble.name}: {found.verdict}{'' if found.right else '  <-- wrong'}",
            f"  {verdict['why']}",
            f"  {json.dumps(verdict['evidence'])}",
        ]
        sys.stdout.write("\n".join(lines) + "\n")
    return 0 if all(found.right for found in findings) else 1


def run_troubles(
    folder: Path,
    look: Callable[[str], None] | None = None,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """Run the five pipelines in one process, and ask it how they are until all has been read.

    Args:
        folder: For files, state and logs.
        look: Called with where the process serves, when all has been read and it still runs.
        settings: More settings of the run.
    """
    with ExitStack() as resources:
        broker = resources.enter_context(Broker())
        for topic in _TOPICS:
            broker.create_topic(topic, 2)
        broker.create_topic("slow_sink_out", 200, config=_SLOW)
        _load(broker)
        (port,) = free_ports(1)
        paths = [_write(folder, trouble, port) for trouble in TROUBLES]
        product = Product(
            folder=folder,
            brokers=broker.bootstrap,
            settings={"http.port": "0", "max_records": str(_MOST), **settings},
            options=[str(path) for path in paths[1:]],
        )
        product.write(paths[0].read_text())
        with product:
            _call(product, f"http://127.0.0.1:{port}/")
            seen = _watch(product, folder)
            if look is not None:
                look(_address(folder))
    return [_finding(trouble, seen[trouble.name]) for trouble in TROUBLES]


def _call(product: Product, url: str) -> None:
    """Send a webhook three records, and what is none."""
    deadline = time.monotonic() + _PATIENCE_S
    for body in (b"no record", *(b'{"id": "%d", "at": 1}' % n for n in range(3))):
        while time.monotonic() < deadline and product.running:
            try:
                urlopen(Request(url, body, {"Content-Type": "application/json"}), timeout=10)
            except HTTPError:
                break  # an answer all the same
            except URLError:
                time.sleep(0.1)
            else:
                break


def _write(folder: Path, trouble: Trouble, port: int) -> Path:
    path = folder / f"{trouble.name}.yaml"
    lines = [
        f"name: {trouble.name}",
        f"query: {trouble.sql}",
        f"output: {{topic: {trouble.name}_out, format: json, {trouble.output}}}",
        dedent(trouble.more).strip().replace("PORT", str(port)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def _load(broker: Broker) -> None:
    producer = open_producer(broker.settings, **{"enable.idempotence": True}).api
    for topic, partition, value in _rows():
        data = b"no record" if value is None else json.dumps(value).encode()
        producer.produce(topic, data, partition=partition)
        producer.poll(0)
    if producer.flush(60):
        raise RunError("the broker did not take the records")


def _rows() -> Rows:
    for n in range(RECORDS):
        yield "sales", n % 2, {"id": f"s{n}", "at": _START_MS + n}
        yield "clicks", n % 2, {"id": "hot", "at": _START_MS + n}
    for n in range(200):
        yield "views", n % 2, {"id": "hot", "at": _START_MS + n}
        yield "calls", n % 2, {"id": f"c{n}", "at": _START_MS + _HOUR_MS + n}
        yield "orders", 0, {"id": f"o{n}", "at": _START_MS + n}
    for partition in range(2):
        yield "returns", partition, {"id": "none", "at": _START_MS + _HOUR_MS * (1 - partition)}
    yield "orders", 1, None


def _watch(product: Product, folder: Path) -> dict[str, list[Mapping[str, Any]]]:
    """Return the states that each pipeline went through, one for each batch."""
    seen: dict[str, list[Mapping[str, Any]]] = {trouble.name: [] for trouble in TROUBLES}
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        if not product.running:
            raise RunError("the pipelines ended", hint=product.words())
        found = _status(folder)
        for at in found:
            known = seen[at["pipeline"]]
            if known and (known[-1]["batch"], known[-1]["doing"]) == (at["batch"], at["doing"]):
                known.pop()
            known.append(at)
        if found and all(_done(at) for at in found):
            return seen
        time.sleep(0.1)
    raise RunError("the pipelines did not read all", hint=product.words())


def _done(at: Mapping[str, Any]) -> bool:
    if at["state"] == "failed":
        return True
    unread = sum(topic["records"] for topic in at["lag"].values())
    return at["state"] == "running" and at["batch"] > 0 and not unread


def _finding(trouble: Trouble, seen: list[Mapping[str, Any]]) -> Finding:
    behind = [at for at in seen if any(topic["records"] for topic in at["lag"].values())]
    chosen = behind[_COLD:] if trouble.while_behind else seen[-1:]
    verdicts = Counter(at["verdict"]["kind"] for at in chosen)
    verdict = verdicts.most_common(1)[0][0] if verdicts else "none"
    last = [at for at in chosen if at["verdict"]["kind"] == verdict] or seen[-1:]
    return Finding(trouble=trouble, verdict=verdict, status=last[-1])


def _address(folder: Path) -> str:
    log = (folder / "run.log").read_text()
    found = re.search(r"health, status and metrics at (\S+)", log)
    return found.group(1) if found else ""


def _status(folder: Path) -> list[Mapping[str, Any]]:
    try:
        with urlopen(f"{_address(folder)}/status", timeout=10) as answer:
            return json.load(answer)["pipelines"]
    except (ValueError, URLError):
        return []


if __name__ == "__main__":
    raise SystemExit(main())

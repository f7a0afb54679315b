"""One question about a flow over tables: do the engine and the oracle differ, and where?"""

# pyright: basic

import json
import traceback
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kaflow_engine.errors import KaflowError, Location
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.property.executor import How, _dead_letters, _table, crashes
from tests.property.tables import TableFlow
from tests.reference.authored import duration
from tests.reference.dimensions import dimensions_as_tables
from tests.reference.records import BatchResult
from tests.reference.table_interpreter import COUNTED, TableOracle
from tests.reference.table_query import TableTopic, TableWrite
from tests.reference.table_sql import read_tables
from tests.reference.throttle import Throttled, paces

Rows = Mapping[str, list[tuple[str, int]]]
"""By topic and key: values and times, in order."""
Letters = list[tuple[str, int, str]]
"""Topic, offset (-1: of a row) and phase."""


@dataclass(frozen=True, kw_only=True)
class TablesSeen:
    """What can be compared."""

    rows: tuple[Rows, ...]
    letters: tuple[Letters, ...]
    counters: Mapping[str, int]


def writes_of(flow: TableFlow) -> tuple[TableWrite, ...]:
    """Return what the outputs of a flow write."""
    return _tables_of(flow)[0]


def _tables_of(flow: TableFlow) -> tuple[tuple[TableWrite, ...], dict[str, TableTopic]]:
    author = dimensions_as_tables(flow.author)
    return read_tables(author, flow.columns, flow.partitions, duration)


def interpret(flow: TableFlow) -> list[BatchResult]:
    """Ask the oracle."""
    oracle = TableOracle(*_tables_of(flow))
    throttled = Throttled(oracle, paces(flow.author, duration))
    return [throttled.run(batch) for batch in flow.batches]


def seen_by_oracle(results: list[BatchResult]) -> TablesSeen:
    """Bring the oracle's results into comparable form."""
    rows: list[Rows] = []
    for result in results:
        by_key: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for row in result.rows:
            by_key[f"{row.topic} {_values(row.key)}"].append((_json(row.value), row.timestamp))
        rows.append(dict(by_key))
    letters = tuple(sorted((x.topic, x.offset, x.phase) for x in r.dead_letters) for r in results)
    return TablesSeen(rows=tuple(rows), letters=letters, counters=results[-1].counters)


def seen_by_engine(flow: TableFlow, how: How) -> TablesSeen:
    """Run the batches of a flow through the local executor."""
    spec = pipeline_from_mapping(dict(flow.author), Location("<tables>"))
    schemas = {
        name: tuple(Column(column, kind) for column, kind in columns.items())
        for name, columns in flow.columns.items()
    }
    pipeline = LocalPipeline(
        build_plan(spec, Config(), schemas).plan,
        {name: range(count) for name, count in flow.partitions.items()},
        spread=how.spread,
        replay=how.replay,
        point=crashes(how.crashes),
    )
    rows: list[Rows] = []
    letters: list[Letters] = []
    for batch in flow.batches:
        output = pipeline.run(_table(batch.records), batch.time).output.to_pylist()
        by_key: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for row in output:
            if row["kind"] == 0:
                value = _json(row["value"] and json.loads(row["value"]))
                key = "None" if row["key"] is None else row["key"].decode()
                by_key[f"{row['topic']} {_values(key)}"].append((value, row["timestamp"]))
        rows.append(dict(by_key))
        letters.append(sorted((x[0], x[2], x[3]) for x in _dead_letters(output)))
    counters = {name: pipeline.counters[name] for name in COUNTED}
    return TablesSeen(rows=tuple(rows), letters=tuple(letters), counters=counters)


def difference(flow: TableFlow, how: How) -> str | None:
    """Run a flow both ways; None where all is the same."""
    wanted = seen_by_oracle(interpret(flow))
    writes = writes_of(flow)
    alone, each = len(writes) == 1, all(write.each for write in writes)
    # Several outputs share tables where their conditions let them, which moves counts and times.
    untimed = not alone or writes[0].tables.joins or (writes[0].groups and not each)
    try:
        got = seen_by_engine(flow, how)
    except KaflowError as error:
        return f"the engine ends with {type(error).__name__}: {error}"
    except Exception:
        return f"the engine breaks: {traceback.format_exc()}"
    for number, (want, have) in enumerate(zip(wanted.rows, got.rows, strict=True), 1):
        if untimed:
            # A change that a later one of its batch undoes need not leave its time behind.
            want, have = _without_times(want), _without_times(have)
        if want != have:
            keys = sorted(key for key in {*want, *have} if want.get(key) != have.get(key))
            lines = [
                f"{key}\n  got      {have.get(key)}\n  expected {want.get(key)}" for key in keys
            ]
            return f"rows of batch {number}:\n" + "\n".join(lines)
    for number, (want, have) in enumerate(zip(wanted.letters, got.letters, strict=True), 1):
        if not each:  # a row that fails may be replaced before anything leaves
            want, have = _of_records(want), _of_records(have)
        if want != have:
            return f"dead letters of batch {number}: {have}\nexpected: {want}"
    if alone and wanted.counters != got.counters:
        return f"counters: {got.counters}\nexpected: {wanted.counters}"
    return None


def _of_records(letters: Letters) -> Letters:
    return [letter for letter in letters if letter[1] >= 0]


def _without_times(rows: Rows) -> Rows:
    return {key: [(value, 0) for value, _ in some] for key, some in rows.items()}


def shrink(flow: TableFlow, how: How) -> tuple[TableFlow, How]:
    """Return a smaller flow that differs in the same way."""
    found = difference(flow, how) or ""
    kind = found.split(":")[0].rstrip("0123456789 ")
    again = True
    while again:
        again = False
        for candidate in _smaller(flow, how):
            try:
                other = difference(*candidate)
            except Exception:  # the smaller flow makes no sense
                continue
            if other is not None and other.startswith(kind):
                flow, how = candidate
                again = True
                break
    return flow, how


def _smaller(flow: TableFlow, how: How):
    if how != How():
        yield flow, How()
    outputs = flow.author["outputs"]
    if len(outputs) > 1:
        for place in range(len(outputs)):
            rest = [output for n, output in enumerate(outputs) if n != place]
            yield replace(flow, author={**flow.author, "outputs": rest}), how
    batches = flow.batches
    for n, batch in enumerate(batches):
        if not batch.records or len(batches) == 1:
            continue
        yield replace(flow, batches=(*batches[:n], *batches[n + 1 :])), how
    for n in range(len(batches) - 1):
        joined = replace(batches[n + 1], records=batches[n].records + batches[n + 1].records)
        yield replace(flow, batches=(*batches[:n], joined, *batches[n + 2 :])), how
    for n, batch in enumerate(batches):
        for place in range(len(batch.records)):
            records = batch.records[:place] + batch.records[place + 1 :]
            fewer = replace(batch, records=records)
            if records:
                yield replace(flow, batches=(*batches[:n], fewer, *batches[n + 1 :])), how


def report(flow: TableFlow, how: How, found: str) -> str:
    """Return the text of a failure."""
    lines = [found, f"{how}", json.dumps(flow.author, indent=1)]
    for batch in flow.batches:
        lines.append(f"batch at {batch.time}")
        for r in batch.records:
            lines.append(
                f"  {r.topic}[{r.partition}]@{r.offset} ts {r.ts} key {r.key} {r.headers or ''} "
                f"{r.raw or json.dumps(r.value)}"
            )
    return "\n".join(lines)


def _values(key: object) -> str:
    """Return a key without the names of its columns, which cases check."""
    text = str(key)
    return _json(list(json.loads(text).values())) if text.startswith("{") else text


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)

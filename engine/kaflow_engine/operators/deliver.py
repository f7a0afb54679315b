"""The end of a task: finished rows and dead letters, in order, to the sink."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped, and duckdb in part

import base64
import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.duck import query
from kaflow_engine.formats.pick import keep, pick
from kaflow_engine.operators.order import has_members, order_of
from kaflow_engine.operators.params import Plan
from kaflow_engine.operators.schemas import DEAD, ORIGIN, OUTPUT, READY, REPORT, TRIGGER
from kaflow_engine.operators.task import BatchContext, Task

_ORDER = (*TRIGGER, *ORIGIN)


def run_deliver(plan: Plan, batch: BatchContext, rows: pa.Table, task: Task) -> pa.Table:
    """Hand what is ready to the sink and return the reports.

    Args:
        plan: What runs.
        batch: Which batch.
        rows: Schema EXCHANGE, kinds READY, DEAD and REPORT.
        task: Takes rows of schema OUTPUT, those of one key in the order of section 1.
    """
    kinds = rows["kind"]
    reports = rows.filter(pc.equal(kinds, REPORT))
    ready = keep(rows, pc.equal(kinds, READY))
    dead = rows.filter(pc.equal(kinds, DEAD))
    found: list[pa.Table] = []
    if ready.num_rows:
        found.append(_output(plan, ready))
    if dead.num_rows:
        found.append(_letters(plan, dead))
    if found:
        task.deliver(pa.concat_tables(found))
    return reports


def _output(plan: Plan, ready: pa.Table) -> pa.Table:
    if has_members(ready):
        ordered = query(
            f"SELECT part, key, value, ts FROM rows ORDER BY {', '.join(_ORDER)}, members",
            rows=ready.drop_columns(["payload", "raw"]),
        )
    else:
        wanted = ready.select(["part", "key", "value", "ts"])
        ordered = pick(wanted, pa.array(order_of(ready, _ORDER)))
    count = ordered.num_rows
    columns: dict[str, Any] = {
        "slot": ordered["part"],
        "topic": pa.repeat(plan.finish.topic, count),
        "key": ordered["key"],
        "value": ordered["value"],
        "timestamp": ordered["ts"],
        "headers": pa.nulls(count, OUTPUT.field("headers").type),
        "partition": pa.nulls(count, pa.int32()),
        "kind": pa.repeat(0, count),
    }
    return pa.Table.from_pydict(columns).cast(OUTPUT)


def _letters(plan: Plan, dead: pa.Table) -> pa.Table:
    columns = ["t_topic", "t_part", "t_off", "part", "raw", "payload"]
    rows = sorted(
        dead.select(columns).to_pylist(),
        key=lambda row: (row["t_topic"], row["t_part"], row["t_off"]),
    )
    return pa.Table.from_pylist([_letter(plan, row) for row in rows], schema=OUTPUT)


def _letter(plan: Plan, row: dict[str, Any]) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads(row["raw"]) if row["raw"] else {}
    why: dict[str, Any] = json.loads(row["payload"])
    source = plan.topics[row["t_topic"]].name
    place = {
        "pipeline": plan.name,
        "topic": source,
        "partition": row["t_part"],
        "offset": row["t_off"],
        "timestamp": raw.get("t"),
        "phase": why["phase"],
        "error": why["error"],
        "message": why["message"],
        "attempt": why["attempt"],
    }
    headers = [{"key": k, "value": _bytes(v)} for k, v in raw.get("h") or []]
    headers += [
        {"key": f"kaflow.{name}", "value": str(value).encode()} for name, value in place.items()
    ]
    return {
        "slot": row["part"],
        "topic": plan.dead_letter_topic,
        "key": _bytes(raw.get("k")),
        "value": _bytes(raw.get("v")),
        "timestamp": raw.get("t") or 0,
        "headers": headers,
        "partition": None,
        "kind": 1,
    }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)

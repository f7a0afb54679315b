"""Flows with aggregates, built by hand, and what they write."""

# pyright: basic

import json
import re
from dataclasses import replace

import duckdb
import pyarrow as pa

from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.numbers import state_in
from kaflow_engine.flow.operators import Aggregate, Decode, Operator, Project
from kaflow_engine.flow.records import DEAD_LETTER, RECORDS
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.flow.windows import FixedWindow, SessionWindow
from kaflow_engine.model.columns import Column
from kaflow_engine.plan.planner.grouping.accumulators import accumulate
from kaflow_engine.sql.shape import CallShape, Expr
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.engine.operators.written import Written, count_entries, letter_of

TUMBLE = FixedWindow(size=60_000, advance=60_000)
COUNTS = {"n": "count(*)", "s": "sum(v)", "lo": "min(v)", "hi": "max(v)"}
COLUMNS = {"ts": "BIGINT", "k": "VARCHAR", "v": "INTEGER", "w": "INTEGER"}


def call_of(name, sql):
    """A call over the arguments `v` and `w`; plain ones are written without a blank."""
    function = sql.partition("(")[0]
    arguments = [a for a in ("v", "w") if f'"$row.{a}"' in sql]
    return CallShape(
        name=name,
        function="count_star" if sql == "count(*)" else function,
        arguments=tuple((a, Expr(sql=a, uses=())) for a in arguments),
        sql=sql,
        plain=" " not in sql,
        filter=None,
    )


def calls(given, kind="INTEGER"):
    """Calls by the names of their results, and the types of those, as DuckDB says."""
    shapes = [
        call_of(name, re.sub(r"\b([vw])\b", r'"$row.\1"', sql)) for name, sql in given.items()
    ]
    rows = f'FROM (SELECT NULL::{kind} AS "$row.v", NULL::INTEGER AS "$row.w")'
    with duckdb.connect() as con:
        kinds = {s.name: str(con.sql(f"SELECT {s.sql} {rows}").types[0]) for s in shapes}
    return shapes, kinds


def aggregate_of(place, key, given, window=None, kind="INTEGER", **more):
    shapes, kinds = calls(given, kind)
    accumulators, results = accumulate(
        shapes,
        {"v": kind, "w": "INTEGER"},
        kinds,
        in_sessions=isinstance(window, SessionWindow),
        retracts=more.get("retracts", False),
    )
    settings = {
        "leaves": "changes" if window is None else "closed",
        "each": True,
        "grace": 0,
        "on_late": "drop",
        "delay": 0,
        "ttl": None,
        **more,
    }
    return Aggregate(
        id=f"aggregate:r{place}",
        state=state_in(0, 100 + place),
        inputs=(f"group:r{place}",),
        alias=f"r{place}",
        keys=(Column("k", "VARCHAR"),) if key else (),
        window=window,
        arguments=(Column("v", kind), Column("w", "INTEGER")),
        accumulators=accumulators,
        results=results,
        **settings,
    )


def flow(*aggregates, where=None, select=None, lateness=0, args=("v", "w"), raw=None):
    """A flow: a topic `t` (ts, k, v, w), aggregates one behind the other, and the topic `out`.

    Args:
        aggregates: What `aggregate_of` makes.
        where: SQL over the rows of the last one.
        select: What is written beside the key, by name: type and SQL; None: its results, and what
            its window begins with.
        lateness: Milliseconds.
        args: SQL of `v` and `w` of the rows of a later aggregate, over those before it.
        raw: SQL: where true the original bytes travel along.
    """
    topic = TopicParams(
        name="t",
        index=0,
        format="json",
        columns=tuple(Column(name, kind) for name, kind in COLUMNS.items()),
        event_time='"c.ts"',
        dimension=False,
        rank=2,
        driving=True,
        on_error="dead_letter",
        max_future=1 << 50,
        lateness=lateness,
        idle_timeout=1 << 50,
    )
    driving = Driving(
        input="decode:t",
        alias="t",
        columns=topic.columns,
        filter=None,
        key=None,
        needs=None,
        raw=raw,
        ttl=0,
        emission="immediate",
        on_expiry="drop",
        reemit=False,
    )
    operators: list[Operator] = [Decode(id="decode:t", source=0)]
    rows, alias, read = driving, "t", ("v", "w")
    for one in aggregates:
        chosen = [(column, f'"{alias}.{column.name}"') for column in one.keys]
        for column, sql in zip(one.arguments, read, strict=True):
            chosen.append((column, f'"{alias}.{sql}"' if sql.isidentifier() else sql))
        operators.append(Project(id=one.inputs[0], rows=rows, where=None, columns=tuple(chosen)))
        operators.append(one)
        rows, alias, read = Rows(input=one.id, key=None), one.alias, args
    last = aggregates[-1]
    columns = [(column, f'"{alias}.{column.name}"') for column in last.keys]
    if select is None:
        columns += [(r.column, f'"{alias}.{r.column.name}"') for r in last.results]
        if last.window is not None:
            start = f'epoch_ms("{alias}.window_start")'
            columns.append((Column("start", "BIGINT"), start))
    else:
        columns += [(Column(name, kind), sql) for name, (kind, sql) in select.items()]
    texts = [f'"{alias}.{column.name}"' for column in last.keys]
    if last.window is not None:
        texts.append(f'epoch_ms("{alias}.window_start")::VARCHAR')
    made = f"to_json([{', '.join(texts)}]::VARCHAR[])::VARCHAR"
    columns.insert(0, (Column("$key", "VARCHAR"), made))
    operators.append(Project(id="project:out", rows=rows, where=where, columns=tuple(columns)))
    sink = TopicSink(
        id="sink:out",
        inputs=("project:out",),
        exchange=False,
        key="$key",
        topic="out",
        format="json",
        key_in_value=False,
    )
    return Flow(
        pipeline="p",
        name="p",
        sources=(topic,),
        operators=tuple(operators),
        sinks=(sink,),
        partitions=4,
        dead_letter_topic="dead",
        delivery="exactly_once",
        dimensions_first=False,
    )


class Running:
    """A flow with what it writes; records are (ts, k, v[, w])."""

    def __init__(self, given, spread=False):
        if spread:
            given = replace(given, sinks=tuple(replace(s, exchange=True) for s in given.sinks))
        self.flow, self.spread = given, spread
        self.pipeline = LocalPipeline(given, {"t": [0]}, spread=spread, replay=True)
        self.offset = 0
        self.letters = []

    def batch(self, *rows):
        """Rows that a batch of records writes: key and value."""
        found = [
            {
                "topic": "t",
                "partition": 0,
                "offset": self.offset + n,
                "timestamp": 0,
                "value": json.dumps(dict(zip(COLUMNS, row, strict=False))).encode(),
            }
            for n, row in enumerate(rows)
        ]
        self.offset += len(rows)
        return self._rows(self.pipeline.run(pa.Table.from_pylist(found, schema=RECORDS), 0))

    def end(self):
        """Rows that the end of a bounded run writes."""
        return self._rows(self.pipeline.end(0))

    def _rows(self, batch):
        rows = []
        for row in batch.output.to_pylist():
            if row["kind"] == DEAD_LETTER:
                self.letters.append(letter_of(row))
            else:
                value = row["value"] and json.loads(row["value"])
                key = json.loads(row["key"])
                left = value and [v for n, v in value.items() if n not in ("k", "start")]
                rows.append((*key, row["timestamp"], left))
        return Written(rows) if self.spread else rows

    @property
    def entries(self):
        """How many entries the state holds."""
        return count_entries(self.flow, self.pipeline, Aggregate)

"""Flows with tables, built by hand, and what they write."""

# pyright: basic

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kaflow_engine.flow.decodes import decode_id
from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.numbers import table_state
from kaflow_engine.flow.operators import Decode, Project
from kaflow_engine.flow.records import DEAD_LETTER, RECORDS
from kaflow_engine.flow.sinks import TopicSink
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.flow.tables import Materialize, TableJoin, TableSide
from kaflow_engine.model.columns import Column
from kaflow_engine.model.record_columns import RECORD_COLUMNS
from kaflow_engine.operators.rows.layout import key_text
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.engine.operators.written import Written, count_entries, letter_of

COLUMNS = (Column("id", "BIGINT"), Column("k", "VARCHAR"), Column("v", "INTEGER"))


def topic(name, index, columns=COLUMNS):
    return TopicParams(
        name=name,
        index=index,
        format="json",
        columns=columns,
        event_time=None,
        dimension=True,
        rank=0,
        driving=True,
        on_error="dead_letter",
        max_future=1 << 50,
        lateness=0,
        idle_timeout=1 << 50,
        record_columns=tuple(c for c in RECORD_COLUMNS if c.name in ("_key", "_headers")),
    )


def table(place, alias, of=None, *, chain=0, key: Any = "id", where=None, **more):
    """A table of a topic `of` (id, k, v) by columns; `key="_key"`: by the Kafka key."""
    kept = (*COLUMNS, *(c for c in RECORD_COLUMNS if c.name == "_key"))
    keys = (key,) if isinstance(key, str) else key
    kinds = {column.name: column.type for column in kept}
    deletes = (f'"{alias}._key"',) if keys == ("_key",) else None
    driving = Driving(
        input=decode_id(of or alias),
        alias=alias,
        columns=kept,
        filter=where,
        key=None,
        needs=None,
        raw=None,
        ttl=0,
        emission="immediate",
        on_expiry="drop",
        reemit=False,
        chain=chain,
    )
    settings = {"deletes": deletes, "operation": None, "each": True, "retain": None, **more}
    return Materialize(
        id=f"table:{alias}",
        state=table_state(chain, place),
        rows=driving,
        columns=tuple(Column(f"{alias}.{c.name}", c.type) for c in kept),
        keys=tuple((Column(name, kinds[name]), f'"{alias}.{name}"') for name in keys),
        **settings,
    )


def columns_of(operator):
    """The columns of the rows of a table."""
    if isinstance(operator, TableJoin):
        return tuple(column for side in operator.sides for column in side.columns)
    return operator.columns


def table_join(place, left, right, on, kind="INNER", key: Any = "pair", each=True):
    """A join over pairs of columns `alias.column`, all texts."""

    def side(operator, names, preserved):
        return TableSide(
            input=operator.id,
            columns=columns_of(operator),
            key=key_text([(f'"{name}"', "VARCHAR") for name in names]),
            preserved=preserved,
        )

    lefts, rights = zip(*on, strict=True)
    return TableJoin(
        id=f"joined:{place}",
        state=table_state(0, place),
        left=side(left, lefts, kind in ("LEFT", "FULL")),
        right=side(right, rights, kind in ("RIGHT", "FULL")),
        key=key,
        each=each,
    )


def rekeyed(place, before, *names, each=True):
    """Rows of a join under a key of their own."""
    kinds = {column.name: column for column in columns_of(before)}
    return Materialize(
        id=f"rekeyed:{place}",
        state=table_state(0, place),
        rows=Rows(input=before.id, key=None),
        columns=columns_of(before),
        keys=tuple((kinds[name], f'"{name}"') for name in names),
        deletes=None,
        operation=None,
        each=each,
        retain=None,
    )


def flow(*operators, keys=None, select=None, where=None, partitions=4):
    """A flow: what its tables read, the operators, and of each table that nothing reads a topic.

    Args:
        operators: Tables and their joins.
        keys: SQL of the texts that are the key of the output; None: the key of the last table.
        select: By name type and SQL; None: all columns of the last table.
        where: Of the output.
        partitions: Of the state.
    """
    edges = [
        o.rows for o in operators if isinstance(o, Materialize) and isinstance(o.rows, Driving)
    ]
    names = sorted({edge.input.removeprefix("decode:") for edge in edges})
    read = {o.rows.input for o in operators if isinstance(o, Materialize)}
    read |= {side.input for o in operators if isinstance(o, TableJoin) for side in o.sides}
    ends = [operator for operator in operators if operator.id not in read]
    projects, sinks = [], []
    for end in ends:
        out = "out" if end is ends[-1] else f"out of {end.id}"
        texts = keys or [f"({sql})::VARCHAR" for _, sql in end.keys]
        chosen = [(Column(c.name, c.type), f'"{c.name}"') for c in columns_of(end)]
        if select is not None:
            chosen = [(Column(name, kind), sql) for name, (kind, sql) in select.items()]
        made = f"to_json([{', '.join(texts)}]::VARCHAR[])::VARCHAR"
        chosen.insert(0, (Column("$key", "VARCHAR"), made))
        rows = Rows(input=end.id, key=None)
        project = Project(id=f"project:{out}", rows=rows, where=where, columns=tuple(chosen))
        projects.append(project)
        sinks.append(
            TopicSink(
                id=f"sink:{out}",
                inputs=(project.id,),
                exchange=False,
                key="$key",
                topic=out,
                format="json",
                key_in_value=False,
                compacted=True,
            )
        )
    return Flow(
        pipeline="p",
        name="p",
        sources=tuple(topic(name, index) for index, name in enumerate(names)),
        operators=(
            *(Decode(id=decode_id(name), source=i) for i, name in enumerate(names)),
            *operators,
            *projects,
        ),
        sinks=tuple(sinks),
        partitions=partitions,
        dead_letter_topic="dead",
        delivery="exactly_once",
        dimensions_first=False,
    )


def record(of, row, ts=0, key=None, partition=0, op=None):
    """A record of a topic: `row` is (id, k, v), None or bytes."""
    if isinstance(row, tuple):
        names = [column.name for column in COLUMNS]
        row = json.dumps(dict(zip(names, row, strict=False))).encode()
    return {
        "topic": of,
        "partition": partition,
        "timestamp": ts,
        "key": None if key is None else key.encode(),
        "value": row,
        "headers": None if op is None else [{"key": "op", "value": op.encode()}],
    }


class Running:
    """A flow with what it writes."""

    def __init__(self, given, spread=False, shown=None):
        if spread:
            given = replace(given, sinks=tuple(replace(s, exchange=True) for s in given.sinks))
        self.flow, self.spread, self.shown = given, spread, shown
        places = {source.name: [0, 1] for source in given.sources}
        self.pipeline = LocalPipeline(given, places, spread=spread, replay=True)
        self.offsets = {}
        self.letters = []
        self.times = 0

    def batch(self, *records, at=None):
        """Rows that a batch of records writes: key, event time and values (None: a delete).

        Args:
            records: Of `record`.
            at: Batch time.
        """
        found = []
        for one in records:
            place = one["topic"], one["partition"]
            self.offsets[place] = self.offsets.get(place, -1) + 1
            found.append({**one, "offset": self.offsets[place]})
        found.sort(key=lambda one: (one["topic"], one["partition"]))
        self.times = self.times if at is None else at
        return self._rows(
            self.pipeline.run(pa.Table.from_pylist(found, schema=RECORDS), self.times)
        )

    def end(self):
        """Rows that the end of a bounded run writes."""
        return self._rows(self.pipeline.end(self.times))

    def _rows(self, batch):
        rows = []
        for row in batch.output.to_pylist():
            if row["kind"] == DEAD_LETTER:
                self.letters.append(letter_of(row))
            else:
                value = row["value"] and json.loads(row["value"])
                values = value and [value[n] for n in self.shown or value]
                rows.append((json.loads(row["key"]), row["timestamp"], values))
        return Written(rows) if self.spread else rows

    def counts(self):
        """What became of records: used, filtered, skipped, of these without a key; dead letters."""
        found = self.pipeline.counters
        return {
            name: found[name]
            for name in ("read", "used", "filtered", "skipped", "null_key", "dead_letter")
            if found[name]
        }

    @property
    def entries(self):
        """How many entries the states hold."""
        return count_entries(self.flow, self.pipeline, Materialize | TableJoin)

"""An output whose rows are typed columns, with what runs of it do."""
# pyright: basic

import json

import pyarrow as pa

from kaflow_engine.connectors.contract import Output, Owner, TaskPart
from kaflow_engine.duck.queries import query, value
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import OUTPUT, TABLE_ROW
from kaflow_engine.flow.sinks import ConnectorSink
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.change_rows import change_rows
from kaflow_engine.operators.rows.row_text import from_text, to_text

OWNER = Owner(state="s", generation=1, epoch=1)
ROWS = (Column("k", "VARCHAR"), Column("n", "INTEGER"))


class TypedOutput:
    """An output of any type."""

    def __init__(
        self,
        kind,
        outlet,
        name,
        connection,
        columns=ROWS,
        key=None,
        key_columns=(),
        changes=False,
        create=True,
        delivery="exactly_once",
        **settings,
    ):
        self.name, self.outlet = name, outlet
        self.sink = ConnectorSink(
            id=f"sink:{name}",
            inputs=("p",),
            exchange=False,
            key=key,
            kind=kind,
            target=f"{kind}:test.{name}",
            settings=(),
            columns=columns,
            key_in_value=not key_columns,
            changes=changes,
            key_columns=key_columns,
        )
        self.output = Output(
            name=self.sink.target,
            place=name,
            columns=columns,
            key=key,
            key_columns=key_columns,
            changes=changes,
            settings={"connection": "test", "table": name, "create": create, **settings},
            connection=connection,
            delivery=delivery,
        )

    def begin(self, owner=OWNER):
        return self.outlet.open(self.output, pa.schema([]), owner, None)

    def look(self, owner=OWNER):
        return self.outlet.look(self.output, pa.schema([]), owner)

    def hand_over(self, owner):
        self.outlet.hand_over(self.output, pa.schema([]), owner)

    def task(self, batch, *rows, owner=OWNER, mark="m", slot=0, passing=lambda point: None):
        """Write (key, texts or None) pairs in a task."""
        given = [
            {
                "slot": slot,
                "topic": self.sink.target,
                "key": None if key is None else key.encode(),
                "value": None if texts is None else json.dumps(texts).encode(),
                "kind": TABLE_ROW,
                "source_partition": 0,
                "source_offset": n,
            }
            for n, (key, texts) in enumerate(rows)
        ]
        typed = change_rows(self.sink, pa.Table.from_pylist(given, schema=OUTPUT))
        part = TaskPart(rows=typed, batch=batch, epoch=owner.epoch, mark=mark, passing=passing)
        return self.outlet.task(self.output, owner).write(part)

    def read_back(self, most=10):
        """Return what checks see: each value as the text with which it travels."""
        rows = self.outlet.read(self.output, 0, most)
        texts = (
            f"{to_text(identifier(column.name), column.type)} AS {identifier(column.name)}"
            for column in self.output.columns
        )
        found = query(f"SELECT {', '.join(texts)} FROM rows", rows)
        return [tuple(row.values()) for row in found.to_pylist()]


def traveling(kind, text):
    """Return the one text with which a value travels that may be written as several."""
    given = from_text("?::VARCHAR", kind)
    return value(f"SELECT {to_text(f'CAST({given} AS {kind})', kind)}", [text])

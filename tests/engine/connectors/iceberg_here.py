"""An output of type iceberg over a catalog in a file, with what runs of it do."""
# pyright: basic

import json
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import load_catalog

from kaflow_engine.connectors.contract import FinishedBatch, Output, Owner, TaskPart
from kaflow_engine.connectors.iceberg.outputs import IcebergOutlet
from kaflow_engine.flow.records import OUTPUT, TABLE_ROW
from kaflow_engine.flow.sinks import ConnectorSink
from kaflow_engine.model.columns import Column
from kaflow_engine.model.outputs.connection_specs import IcebergConnection
from kaflow_engine.operators.rows.change_rows import change_rows

OWNER = Owner(state="s", generation=1, epoch=1)
ROWS = (Column("k", "VARCHAR"), Column("n", "INTEGER"))
NAME = "sales.orders"


def catalog_in(folder: Path) -> IcebergConnection:
    """Return a catalog, and a warehouse, in a folder."""
    return IcebergConnection(uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))


@contextmanager
def catalog_of(connection, name="test"):
    """Open a catalog as any program would."""
    catalog = load_catalog(name, **json.loads(connection.settings["properties"]))
    try:
        yield catalog
    finally:
        catalog.close()


class Table:
    """An output, with what runs of it do."""

    def __init__(self, connection, columns=ROWS, key=None, changes=False, create=True, name=NAME):
        self.connection, self.name = connection, name
        self.sink = ConnectorSink(
            id=f"sink:{name}",
            inputs=("p",),
            exchange=False,
            key=key,
            kind="iceberg",
            target=f"iceberg:test.{name}",
            settings=(),
            columns=columns,
            changes=changes,
        )
        self.output = Output(
            name=self.sink.target,
            place=name,
            columns=columns,
            key=key,
            changes=changes,
            settings={"connection": "test", "table": name, "create": create},
            connection=connection.settings,
        )
        self.outlet = IcebergOutlet()

    def begin(self, owner=OWNER):
        return self.outlet.open(self.output, pa.schema([]), owner, None)

    def look(self):
        return self.outlet.look(self.output, pa.schema([]), OWNER)

    def task(self, batch, *rows, slot=0):
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
        return self.outlet.task(self.output, OWNER).write(
            TaskPart(rows=typed, batch=batch, epoch=1, mark="m")
        )

    def write(self, sink, batch, *rows, mark="m"):
        """Write rows in one task, and commit them."""
        written = self.task(batch, *rows)
        sink.commit(FinishedBatch(number=batch, mark=mark, notes=written.notes))
        return written

    @contextmanager
    def loaded(self):
        """Give the table as any program reads it."""
        with catalog_of(self.connection) as catalog:
            yield catalog.load_table(self.name)

    def rows(self):
        with self.loaded() as table:
            found = table.scan().to_arrow().to_pylist()
        return sorted((tuple(row.values()) for row in found), key=str)

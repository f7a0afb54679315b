"""An output of type iceberg over a catalog in a file, with what runs of it do."""
# pyright: basic

import json
from contextlib import contextmanager
from pathlib import Path

from pyiceberg.catalog import load_catalog

from kaflow_engine.connectors.contract import FinishedBatch
from kaflow_engine.connectors.iceberg.outputs import IcebergOutlet
from kaflow_engine.model.outputs.connection_specs import IcebergConnection
from tests.engine.connectors.typed_output_here import TypedOutput

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


class Table(TypedOutput):
    """A table; the driver commits what its tasks hand over."""

    def __init__(self, connection, *columns, name=NAME, **about):
        self.connection = connection
        super().__init__("iceberg", IcebergOutlet(), name, connection.settings, *columns, **about)

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

"""An output of type clickhouse over its engine, with what runs of it do."""
# pyright: basic

from kaflow_engine.connectors.clickhouse.outputs import ClickHouseOutlet
from kaflow_engine.model.outputs.connection_specs import ClickHouseConnection
from tests.engine.connectors.typed_output_here import TypedOutput


class Table(TypedOutput):
    """A table; its tasks commit what they write."""

    def __init__(self, server, name, *columns, **about):
        self.server = server
        connection = ClickHouseConnection(**server.connection).settings
        super().__init__("clickhouse", ClickHouseOutlet(), name, connection, *columns, **about)

    write = TypedOutput.task

    def rows(self, asked="*", final=False):
        place = ".".join(f"`{part}`" for part in self.name.split("."))
        end = " FINAL" if final else ""
        return self.server.ask(f"SELECT {asked} FROM {place}{end} ORDER BY 1")

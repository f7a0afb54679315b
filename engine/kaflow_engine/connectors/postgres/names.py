"""What statements about an output name: its table, its ledger, its columns, all quoted."""

from dataclasses import dataclass

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.tables.columns import written_columns
from kaflow_engine.duck.quoting import identifier

RUNS, LEDGER, BEFORE = "_kaflow_runs", "_kaflow_ledger", "_kaflow_before"


def statement(text: str) -> bytes:
    """Return a statement with quoted names as the driver takes one that is no literal."""
    return text.encode()


@dataclass(frozen=True, slots=True)
class Names:
    """The names of an output."""

    output: Output

    @property
    def schema(self) -> str | None:
        """The schema that the author names; None: the first one of the search path."""
        schema, dot, _ = str(self.output.settings["table"]).partition(".")
        return schema if dot else None

    @property
    def plain(self) -> str:
        """The name of the table alone."""
        return str(self.output.settings["table"]).rpartition(".")[2]

    @property
    def table(self) -> str:
        """The table, quoted."""
        return self.beside(self.plain)

    @property
    def runs(self) -> str:
        """The table that says whose each output is, quoted."""
        return self.beside(RUNS)

    @property
    def ledger(self) -> str:
        """The table with the last batch of each delivery partition, quoted."""
        return self.beside(LEDGER)

    @property
    def before(self) -> str:
        """The table with what tables had before anything was written to them, quoted."""
        return self.beside(BEFORE)

    def beside(self, name: str) -> str:
        """Quote a name in the schema of the table."""
        return f"{identifier(self.schema)}.{identifier(name)}" if self.schema else identifier(name)

    @property
    def listed(self) -> str:
        """The columns, quoted."""
        return ", ".join(identifier(column.name) for column in written_columns(self.output))

"""What statements about an output name: its table and its ledger, quoted."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.connectors.contract import Output

RUNS, LEDGER = "_kaflow_runs", "_kaflow_ledger"
VERSION, GONE = "_version", "_deleted"
"""Columns of a table that is created for rows which replace each other."""


def name(text: str) -> str:
    """Quote a name.

    >>> name("a`b")
    '`a\\\\`b`'
    """
    return "`" + text.replace("\\", "\\\\").replace("`", "\\`") + "`"


def text(value: str) -> str:
    """Return a text as a literal.

    >>> text("it's")
    "'it\\\\'s'"
    """
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def database_of(table: str, connection: Mapping[str, str]) -> str:
    """Return the database of a table: that of its name, else that of the connection.

    >>> database_of("web.clicks", {}), database_of("clicks", {"database": "d"})
    ('web', 'd')
    """
    before, dot, _ = table.rpartition(".")
    return before if dot else connection.get("database", "default")


@dataclass(frozen=True, slots=True)
class Names:
    """The names of an output."""

    output: Output

    @property
    def database(self) -> str:
        """The database: that of the table's name, else that of the connection."""
        return database_of(str(self.output.settings["table"]), self.output.connection)

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

    def beside(self, other: str) -> str:
        """Quote a name in the database of the table."""
        return f"{name(self.database)}.{name(other)}"

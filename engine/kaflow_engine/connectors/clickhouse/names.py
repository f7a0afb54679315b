"""What statements about an output name: its table and its ledger, quoted."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.connectors.contract import Output, Settings

RUNS, LEDGER = "_kaflow_runs", "_kaflow_ledger"
_VERSION, _GONE = "_version", "_deleted"


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


def own_columns(settings: Settings) -> tuple[str, str]:
    """Return the columns of a table whose rows replace each other: the version of a row, and
    whether it is gone.

    >>> own_columns({}), own_columns({"version_column": "v"})
    (('_version', '_deleted'), ('v', '_deleted'))
    """
    version, gone = settings.get("version_column"), settings.get("deleted_column")
    return str(version or _VERSION), str(gone or _GONE)


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
    def own(self) -> tuple[str, str]:
        """The columns with the version of a row, and whether it is gone."""
        return own_columns(self.output.settings)

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

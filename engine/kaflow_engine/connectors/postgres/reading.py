"""Rows of a table that are read back, for checks; the server makes texts of their values."""

import pyarrow as pa

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.postgres.client import open_connection, translated
from kaflow_engine.connectors.postgres.names import Names, statement
from kaflow_engine.connectors.read_back import nothing_there, of_texts
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.model.columns import Column


def read_rows(output: Output, most: int) -> pa.Table:
    """Return at most so many rows of the table of an output.

    Raises:
        PostgresAway: The server does not answer.
        PostgresUnfit: It refuses the login, or the table cannot be read.
        SinkUnfit: The table is not there, or holds what its pipeline cannot have written.
    """
    table = Names(output).table
    with open_connection(output) as connection, translated(output, "reading the rows"):
        found = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [table]).fetchone()
        if found != (True,):
            raise nothing_there(output, f"table '{output.settings['table']}'")
        texts = ", ".join(map(_text, output.columns))
        rows = connection.execute(statement(f"SELECT {texts} FROM {table} LIMIT {most}"))
        return of_texts(output, rows.fetchall())


def _text(column: Column) -> str:
    """Return SQL for the text of a value, as DuckDB reads it."""
    name = identifier(column.name)
    if column.type == "BLOB":
        return f"translate(encode({name}, 'base64'), E'\\n', '')"
    if column.type.startswith(("DATE", "TIMESTAMP")):
        return f"replace({name}::text, ' BC', ' (BC)')"
    return f"{name}::text"

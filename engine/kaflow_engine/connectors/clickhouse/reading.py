"""Rows of a table that are read back, for checks; the server makes texts of their values."""

import pyarrow as pa

from kaflow_engine.connectors.clickhouse.client import Server
from kaflow_engine.connectors.clickhouse.names import Names, name, text
from kaflow_engine.connectors.clickhouse.types import parts_of
from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.read_back import nothing_there, of_texts
from kaflow_engine.model.columns import Column

_READING = "reading the rows"
_SETTINGS = ", ".join(
    f"output_format_json_{setting} = 1"
    for setting in ("quote_64bit_integers", "quote_denormals", "named_tuples_as_objects")
)


def read_rows(output: Output, most: int) -> pa.Table:
    """Return at most so many rows of the table of an output; of those of one key the last one.

    Raises:
        ClickHouseAway: The server does not answer.
        ClickHouseUnfit: It refuses the login, or the table cannot be read.
        SinkUnfit: The table is not there, or holds what its pipeline cannot have written.
    """
    server, names = Server.of(output), Names(output)
    place = f"database = {text(names.database)} AND"
    engines = server.rows(
        _READING, f"SELECT engine FROM system.tables WHERE {place} name = {text(names.plain)}"
    )
    if not engines:
        raise nothing_there(output, f"table '{output.settings['table']}'")
    asked = f"SELECT name, type FROM system.columns WHERE {place} table = {text(names.plain)}"
    kinds = {each: kind for each, kind in server.rows(_READING, asked)}
    texts = ", ".join(_text(column, kinds.get(column.name, "")) for column in output.columns)
    final = " FINAL" if "Replacing" in engines[0][0] else ""
    return of_texts(
        output,
        server.rows(
            _READING,
            f"SELECT {texts} FROM {names.table}{final} LIMIT {most} SETTINGS {_SETTINGS}",
        ),
    )


def _text(column: Column, kind: str) -> str:
    """Return SQL for the text of a value, as DuckDB reads it."""
    value, plain = name(column.name), parts_of(kind)[0]
    if column.type == "BLOB":
        return f"base64Encode({value})"
    if plain in ("Array", "Map", "Tuple"):
        return f"toJSONString({value})"
    if plain.startswith("DateTime"):
        return f"toString(toTimeZone({value}, 'UTC'))"
    return f"toString({value})"

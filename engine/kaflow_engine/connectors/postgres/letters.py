"""The dead letters in a table of a database."""

import base64
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.letters import Letter
from kaflow_engine.connectors.postgres.client import open_connection, translated
from kaflow_engine.connectors.postgres.names import Names, statement
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.sinks import LETTER_COLUMNS

_NAMED = ("topic", "partition", "offset", "phase", "error", "message", "attempt", "chain")
"""What tells one from others: a record fails once in each part of a pipeline."""


def letters_in(table: str, connection: Mapping[str, str], pipeline: str) -> list[Letter]:
    """Return the dead letters of a pipeline, oldest records first; none where there is no table.

    Args:
        table: With its schema, if that is not where the connection looks first.
        connection: How the database is reached; secrets among it.
        pipeline: Name of the pipeline.

    Raises:
        SinkError: The table cannot be read.
    """
    output = Output(
        name="dead_letters",
        place=table,
        columns=LETTER_COLUMNS,
        settings={"table": table},
        connection=connection,
    )
    columns = [each.name for each in LETTER_COLUMNS]
    named, where = Names(output).table, identifier("pipeline")
    order = ", ".join(identifier(name) for name in ("timestamp", "topic", "partition", "offset"))
    asked = (
        f"SELECT {', '.join(map(identifier, columns))} FROM {named} WHERE {where} = %s "
        f"ORDER BY {order}"
    )
    with open_connection(output) as opened, translated(output, "reading dead letters"):
        there = opened.execute("SELECT to_regclass(%s) IS NOT NULL", [named]).fetchone()
        if there is None or not there[0]:
            return []
        rows: list[Any] = opened.execute(statement(asked), [pipeline]).fetchall()
    return [_letter(dict(zip(columns, row, strict=True))) for row in rows]


def _letter(row: dict[str, Any]) -> Letter:
    name = sha256(json.dumps([row[name] for name in _NAMED]).encode()).hexdigest()[:12]
    headers = tuple(
        (name, None if value is None else base64.b64decode(value))
        for name, value in json.loads(row.pop("headers"))
    )
    for column in ("key", "value"):
        row[column] = None if row[column] is None else bytes(row[column])
    return Letter(letter=name, headers=headers, redriven=False, **row)

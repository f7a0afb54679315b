"""Dead letters on their way to a table: what their headers say, as columns."""

import base64
import json
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.letters import Letter, letter_of
from kaflow_engine.flow.records import (
    DELETED,
    EVENT_TIME,
    KEY,
    SLOT,
    SOURCE_OFFSET,
    SOURCE_PARTITION,
)
from kaflow_engine.flow.sinks import LETTER_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa  # planning needs the names only, and it takes long to load


def letter_rows(rows: "pa.Table") -> "pa.Table":
    """Return dead letters, schema OUTPUT, as a sink takes them, in their order."""
    import pyarrow as pa

    types = {"VARCHAR": pa.string(), "INTEGER": pa.int32(), "BIGINT": pa.int64()}
    schema = pa.schema(
        [
            *(pa.field(each.name, types.get(each.type, pa.binary())) for each in LETTER_COLUMNS),
            pa.field(KEY, pa.string()),
            pa.field(DELETED, pa.bool_()),
            pa.field(SLOT, pa.int32()),
            pa.field(EVENT_TIME, pa.int64()),
            pa.field(SOURCE_PARTITION, pa.int32()),
            pa.field(SOURCE_OFFSET, pa.int64()),
        ]
    )
    found = [
        {**_columns(letter), DELETED: False, SLOT: row["slot"], EVENT_TIME: row["timestamp"]}
        for row in rows.to_pylist()
        if (letter := letter_of("", row)) is not None
    ]
    return pa.Table.from_pylist(found, schema=schema)


def _columns(letter: Letter) -> dict[str, Any]:
    found = {each.name: _without_nul(getattr(letter, each.name)) for each in LETTER_COLUMNS}
    pairs = [
        [name, None if value is None else base64.b64encode(value).decode()]
        for name, value in letter.headers
    ]
    return {**found, "headers": json.dumps(pairs)}


def _without_nul(value: Any) -> Any:
    """Return a text that every database takes: words about a value may have its NUL."""
    return value.replace("\0", "\\x00") if isinstance(value, str) else value

"""What every record has besides its value: columns that a query may use without declaring them."""

from collections.abc import Mapping, Sequence
from typing import Literal

from kaflow_engine.model.columns import Column
from kaflow_engine.model.key_formats import TEXT

KEY = "_key"
HIDDEN_KEY = "$record_key"
"""What the key of an output is called where it selects another column as `_key`."""
HEADERS = "_headers"
TRACE_HEADERS = ("traceparent", "tracestate")
"""Headers that name the trace to which a record belongs, as the W3C's Trace Context calls them."""
Role = Literal["value", "key", "own_key", "headers"]
"""What of an output record a column becomes: a member of its value, its key, or its headers. The
own key of rows is that of an output which names none: where it is NULL, records have none."""
ROLES: Mapping[str, Role] = {KEY: "key", HEADERS: "headers"}
"""What a column becomes whose name after AS is that of a record column."""
NULL_VALUE = Column("$null", "BOOLEAN")
"""Whether a record has no value; of rows of changes, and for no author to name."""
KEY_BYTES = Column("$key", "BLOB")
"""The key of a record as it came, and of an output that names no key; for no author to name."""

RECORD_COLUMNS = (
    Column(KEY, TEXT),
    Column("_time", "TIMESTAMP"),
    Column("_topic", "VARCHAR"),
    Column("_partition", "INTEGER"),
    Column("_offset", "BIGINT"),
    Column("_timestamp", "TIMESTAMP"),
    Column(HEADERS, "MAP(VARCHAR, BLOB)"),
)


def is_key_bytes(column: str) -> bool:
    """Tell whether a column is KEY_BYTES, alone or of a topic.

    >>> is_key_bytes("$key"), is_key_bytes("o.$key"), is_key_bytes("o.price$key")
    (True, True, False)
    """
    return column.rpartition(".")[2] == KEY_BYTES.name


def record_columns(own: Sequence[Column], key_type: str = TEXT) -> tuple[Column, ...]:
    """Return the record columns of a topic: those whose name is none of its own columns'.

    Args:
        own: Its columns.
        key_type: The type of its keys.
    """
    taken = {column.name.lower() for column in own}
    typed = (Column(KEY, key_type) if c.name == KEY else c for c in RECORD_COLUMNS)
    return tuple(column for column in typed if column.name not in taken)


def readable(own: Sequence[Column], key_type: str = TEXT) -> tuple[Column, ...]:
    """Return all columns that a query may use of a topic."""
    return (*own, *record_columns(own, key_type))

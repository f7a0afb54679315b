"""The formats of the keys of Kafka records, and of what type each key is in a query."""

from collections.abc import Mapping
from typing import Literal, get_args

PlainKeyFormat = Literal["text", "int", "long", "bytes", "json", "avro"]
"""UTF-8; 4 or 8 bytes, big-endian, as Kafka's IntegerSerializer and LongSerializer write them; any
bytes; a JSON value; an Avro record, or one value, whose schema is in the registry."""

KeyFormat = Literal[
    "text",
    "int",
    "long",
    "bytes",
    "json",
    "avro",
    "windowed_text",
    "windowed_int",
    "windowed_long",
    "windowed_bytes",
    "windowed_json",
    "session_text",
    "session_int",
    "session_long",
    "session_bytes",
    "session_json",
]
"""How keys are written and read. A key with a window is that of a group as Kafka Streams has it:
behind what is grouped by 8 bytes with the start of the window; of a session the end, then the
start."""

WindowOfKey = Literal["windowed", "session"]

WINDOWED_KEY, WINDOWED_START, WINDOWED_END = "key", "start", "end"
"""The fields of a key with a window; times are epoch milliseconds, and the end is that of a
session: the event time of its last record."""

KEY_TYPES: Mapping[PlainKeyFormat, str | None] = {
    "text": "VARCHAR",
    "int": "INTEGER",
    "long": "BIGINT",
    "bytes": "BLOB",
    "json": None,
    "avro": None,
}
"""The DuckDB type of a key; None: the one that the author says."""

TEXT = "VARCHAR"
"""The type of a key of which nothing is said."""


def window_of(form: KeyFormat | None) -> WindowOfKey | None:
    """Return which windows a format writes behind keys; None: it writes none."""
    kinds: tuple[WindowOfKey, ...] = ("windowed", "session")
    return next((kind for kind in kinds if form is not None and form.startswith(f"{kind}_")), None)


def of_value(form: KeyFormat) -> PlainKeyFormat:
    """Return the format of what stands before the window; of others the format itself."""
    return next(each for each in get_args(PlainKeyFormat) if each == form.rpartition("_")[2])


def type_of_key(form: KeyFormat, said: str | None) -> str | None:
    """Return the DuckDB type of keys.

    Args:
        form: Their format.
        said: The type of JSON and Avro, which the author says; None: he does not.
    """
    kind = KEY_TYPES[of_value(form)] or said
    window = window_of(form)
    if window is None or kind is None:
        return kind
    times = (WINDOWED_START, *([WINDOWED_END] if window == "session" else []))
    fields = (f'"{WINDOWED_KEY}" {kind}', *(f'"{name}" BIGINT' for name in times))
    return f"STRUCT({', '.join(fields)})"

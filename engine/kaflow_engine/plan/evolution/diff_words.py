"""The words for what differs between two plans: fields, their values, and columns."""

import re
from collections.abc import Mapping
from typing import Any, cast

from kaflow_engine.duck.functions.catalogue import with_versions
from kaflow_engine.model.durations import LONGEST, format_duration
from kaflow_engine.model.record_columns import KEY_BYTES, is_key_bytes

WORDS: Mapping[str, str] = {
    "after": "columns that travel on",
    "avro_id": "id of the Avro schema",
    "avro_schema": "Avro schema",
    "before": "columns that arrive",
    "cluster": "cluster",
    "columns": "columns",
    "dead_letter_topic": "dead letter topic",
    "driving": "role",
    "each": "every change leaves",
    "timed": "the time of groups as a column",
    "emission": "emission type",
    "idle_timeout": "idle timeout",
    "keep": "time that versions are kept",
    "key_columns": "key columns",
    "key_in_value": "key column in the value",
    "key_schema": "Avro schema of keys",
    "letters": "place of dead letters",
    "last_exchange": "exchange by output key",
    "max_future": "greatest time ahead",
    "needs": "columns that must not be NULL",
    "next_key": "key of the next step",
    "on_data_loss": "treatment of lost records",
    "on_error": "treatment of bad records",
    "on_expiry": "treatment of incomplete rows",
    "on_late": "treatment of late records",
    "on_null": "treatment of null values",
    "partitions": "state partitions",
    "pipeline": "id",
    "rank": "order among topics",
    "raw": "records whose bytes travel along",
    "registry": "schema registry",
    "reemit": "emission on dimension updates",
    "require": "columns that must not be NULL",
    "rows": "key of the rows that are found",
    "sides": "order of sides",
    "time": "event time of rows",
    "tombstones": "deletion by null values",
    "ttl": "TTL",
}
"""Names of fields in words, where they differ from the field's own name."""

DURATIONS = frozenset(
    {"ttl", "lateness", "idle_timeout", "max_future", "keep", "grace", "delay", "every"}
)


def named(kind: str, column: str) -> str:
    """Name a column, which may be one that no author has named."""
    if is_key_bytes(column):
        return kind.replace("column", "key of the record")
    return f"{kind} '{column}'"


def shown(name: str, value: object) -> str:
    """Return the value of a field in words."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if name in DURATIONS and isinstance(value, int):
        return "for ever" if value > LONGEST else format_duration(value)
    if name == "registry":
        return re.sub(r"//[^/@']*@", "//", str(value))  # without credentials
    if name == "within" and isinstance(value, Mapping):
        apart = cast(Mapping[str, int], value)
        return ", ".join(f"{format_duration(apart[side])} {side}" for side in ("before", "after"))
    if isinstance(value, Mapping):  # the history of a topic
        where = cast(Mapping[str, Any], value)
        return f"{where['path']} ({where['format']})"
    if name == "key" and value == KEY_BYTES.name:
        return "that of the record"
    if value is None:
        return "not set"
    return plain(value) if isinstance(value, str) else str(value)


def plain(sql: str) -> str:
    """Return SQL as people read it."""
    return with_versions(sql).replace('"', "")

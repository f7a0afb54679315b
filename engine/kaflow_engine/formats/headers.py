"""Headers of Kafka records on their way from a query to a sink: as text, beside key and value."""

import base64
import json
from collections.abc import Mapping

from kaflow_engine.duck.quoting import literal
from kaflow_engine.model.letters import PREFIX

_BYTES: Mapping[str, str] = {
    "MAP(VARCHAR, BLOB)": "e.value",
    "MAP(VARCHAR, VARCHAR)": "encode(e.value)",
}
"""The types that headers may have, and what of an entry is a value as bytes."""
TYPES = tuple(_BYTES)


def headers_sql(kind: str, sql: str, apart: str | None = None) -> str:
    """Return a VARCHAR expression: a JSON list of names with values in base64; NULL for NULL.

    Those that the engine writes itself are left out: one that says for which pipeline a record was
    sent again would hide the row from all others.

    Args:
        kind: One of TYPES.
        sql: The headers, a map.
        apart: A header that is left out, too: the engine writes it.
    """
    wanted = f"NOT starts_with(e.key, {literal(PREFIX)})"
    if apart is not None:
        wanted += f" AND e.key <> {literal(apart)}"
    others = f"list_filter(map_entries({sql}), lambda e: {wanted})"
    pair = f"lambda e: [e.key, to_base64({_BYTES[kind]})]"
    return f"CAST(to_json(list_transform({others}, {pair})) AS VARCHAR)"


def entry_text(name: str, value: str) -> str:
    """Return a header as an entry of such a list."""
    return json.dumps([name, base64.b64encode(value.encode()).decode()], separators=(",", ":"))


def with_entry_sql(entry: str, headers: str) -> str:
    """Return a VARCHAR expression: headers as `headers_sql` makes them, behind one more entry.

    Args:
        entry: SQL of the entry.
        headers: SQL of the headers.
    """
    others = f"coalesce({headers}, '[]')"
    return f"concat('[', {entry}, CASE {others} WHEN '[]' THEN ']' ELSE ',' || {others}[2:] END)"

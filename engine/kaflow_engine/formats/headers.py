"""Headers of Kafka records on their way from a query to a sink: as text, beside key and value."""

from collections.abc import Mapping

from kaflow_engine.duck.quoting import literal
from kaflow_engine.model.letters import PREFIX

_BYTES: Mapping[str, str] = {
    "MAP(VARCHAR, BLOB)": "e.value",
    "MAP(VARCHAR, VARCHAR)": "encode(e.value)",
}
"""The types that headers may have, and what of an entry is a value as bytes."""
TYPES = tuple(_BYTES)


def headers_sql(kind: str, sql: str) -> str:
    """Return a VARCHAR expression: a JSON list of names with values in base64; NULL for NULL.

    Those that the engine writes itself are left out: one that says for which pipeline a record was
    sent again would hide the row from all others.

    Args:
        kind: One of TYPES.
        sql: The headers, a map.
    """
    others = f"list_filter(map_entries({sql}), lambda e: NOT starts_with(e.key, {literal(PREFIX)}))"
    pair = f"lambda e: [e.key, to_base64({_BYTES[kind]})]"
    return f"CAST(to_json(list_transform({others}, {pair})) AS VARCHAR)"

"""Where the entries under a key are: the shard of a key that someone asks for."""

import duckdb
import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import operator_of_state
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.operators.rows.layout import placed_by, selected
from kaflow_engine.operators.rows.partitioning import behind_shard
from kaflow_engine.operators.rows.row_text import from_text, unpack


def shard_key(flow: Flow, state: int, key: str) -> bytes:
    """Return a key behind its shard byte.

    Args:
        flow: What keeps the state.
        state: Its name.
        key: The text of a join key, or of grouping values.
    """
    operator = operator_of_state(flow, state)
    found = None
    if isinstance(operator, Aggregate) and operator.shard is not None:
        found = _placed(operator, operator.shard, key)
    return found or behind_shard(key.encode())


def _placed(aggregate: Aggregate, shard: str, key: str) -> bytes | None:
    """Return a group's key behind its shard byte; None for what is no key of a group."""
    values = ", ".join(
        f"{from_text(f'l[{place}]', column.type)} AS {selected(column)}"
        for place, column in enumerate(aggregate.keys, 1)
    )
    name = identifier("$key")
    sql = (
        f"SELECT {placed_by(shard, name)} AS key FROM "
        f"(SELECT {name}, {values} FROM (SELECT {name}, {unpack(name)} AS l FROM rows))"
    )
    try:
        found: bytes = query(sql, rows=pa.table({"$key": [key]}))["key"][0].as_py()
    except duckdb.Error:
        return None
    return found

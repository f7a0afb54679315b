"""Rows of an output as JSON: what sinks show or send that keep no columns."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from kaflow_engine.connectors.contract import Output
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import DELETED, KEY
from kaflow_engine.formats.contract import format_of

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for capabilities only, and it takes long to load


class JsonRow(NamedTuple):
    """What happens to a row."""

    operation: str
    """`insert` where each row is one more; else `upsert` or `delete`; or what a column says."""
    key: str | None
    row: str | None
    """JSON text, as a topic would have it; None of a row that goes."""


def with_row(about: Mapping[str, str | None], row: str) -> str:
    """Return a JSON object of texts with the JSON text of a row, or `null`, as its last key."""
    return f'{json.dumps(about, ensure_ascii=False)[:-1]}, "row": {row}}}'


def json_rows(
    output: Output,
    rows: "pa.Table",
    form: Literal["json", "json_spaced"] = "json",
    op_column: str | None = None,
) -> Iterator[JsonRow]:
    """Yield the rows of an output in their order.

    Args:
        output: Which one.
        rows: Its columns, with those of `flow.records` that say what happens to a row.
        form: Of their values.
        op_column: The column that says the operation where it has a value, and is not in the row.
    """
    from kaflow_engine.duck.queries import query

    own = tuple(column for column in output.columns if column.name != op_column)
    value = format_of(form).encoder(own, None).sql({c.name: identifier(c.name) for c in own})
    columns = f"{value} AS value, {identifier(KEY)} AS key, {identifier(DELETED)} AS deleted"
    columns += f", {'NULL' if op_column is None else identifier(op_column)} AS operation"
    stays = "upsert" if output.changes else "insert"
    for row in query(f"SELECT {columns} FROM rows", rows).to_pylist():
        gone = row["deleted"]
        operation = row["operation"] or ("delete" if gone else stays)
        yield JsonRow(operation, row["key"], None if gone else row["value"])

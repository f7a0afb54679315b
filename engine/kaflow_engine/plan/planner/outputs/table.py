"""The table that rows go into: where it is, and the types in which it keeps them."""

from collections.abc import Sequence
from pathlib import Path

from duckdb import sqltypes

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.duck.wide.integers import in_duckdb
from kaflow_engine.errors import ModelError
from kaflow_engine.flow.sinks import TableParams
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.table_rows import LARGE, own_columns

_SAME = frozenset(
    "BOOLEAN TINYINT SMALLINT INTEGER BIGINT FLOAT DOUBLE VARCHAR BLOB DATE TIMESTAMP".split()
)
_OTHERS = {
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP_S": "TIMESTAMP",
    "TIMESTAMP_MS": "TIMESTAMP",
    "TIMESTAMP_NS": "TIMESTAMP",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "UUID": "VARCHAR",
    "JSON": "VARCHAR",
}
"""What Delta has no type for, and the nearest that loses nothing but digits below a microsecond.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md#primitive-types
"""


def table_params(
    spec: PipelineSpec, config: Config, write: Write, columns: Sequence[Column], grouped: bool
) -> TableParams | None:
    """Return the table of an output; None where its rows go to a topic.

    Raises:
        ModelError: A column has a type that no table can keep, or one of the table's own names.
        Problems: Several do.
    """
    name, partition = write.output.table, write.output.partition
    if name is None:
        return None
    own = own_columns(grouped, partition)
    mistakes: list[ModelError] = []
    kept: list[Column] = []
    for column in columns:
        kind = table_type(column.type)
        if column.name.lower() in own:
            text = f"every table has a column '{column.name.lower()}' of its own"
            hint = "select it under another name"
            mistakes.append(ModelError(text, spec.place(*write.query_at), hint))
        elif kind is None:
            text = f"a table cannot keep column '{column.name}': it is {column.type}"
            hint = f"write CAST(… AS VARCHAR) AS {column.name}"
            mistakes.append(ModelError(text, spec.place(*write.query_at), hint))
        else:
            kept.append(Column(column.name, kind))
    raise_all(mistakes)
    return TableParams(
        name=name,
        path=str(Path(config.warehouse).absolute() / name),
        partition=partition,
        columns=tuple(kept),
        interval=write.output.interval,
        grouped=grouped,
    )


def table_type(name: str) -> str | None:
    """Return the DuckDB type in which a table keeps values of a type; None: it cannot.

    >>> table_type("UINTEGER[]")
    'BIGINT[]'
    """
    if name in LARGE:
        return "DECIMAL(38,0)"
    return _kept(sqltypes.DuckDBPyType(in_duckdb(name)))


def _kept(kind: sqltypes.DuckDBPyType) -> str | None:
    text = str(kind)
    match kind.id:
        case "list" | "array":
            inner = _kept(_child(kind, 0))
            return None if inner is None else f"{inner}[]"
        case "struct":
            fields = [(name, _kept(_child(kind, i))) for i, (name, _) in enumerate(kind.children)]
            if any(inner is None for _, inner in fields):
                return None
            return f"STRUCT({', '.join(f'{identifier(name)} {inner}' for name, inner in fields)})"
        case "map":
            key, value = _kept(_child(kind, 0)), _kept(_child(kind, 1))
            return None if key is None or value is None else f"MAP({key}, {value})"
        case "decimal":
            return text
        case "enum":
            return "VARCHAR"
        case _:
            return text if text in _SAME else _OTHERS.get(text)


def _child(kind: sqltypes.DuckDBPyType, index: int) -> sqltypes.DuckDBPyType:
    child = kind.children[index][1]
    assert isinstance(child, sqltypes.DuckDBPyType)
    return child

"""Keys of records that are made of several columns of an output."""

from dataclasses import replace

from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.plan.planner.tables.record_keys import own_key_name
from kaflow_engine.plan.planner.tables.written_keys import record_key
from kaflow_engine.sql.shape import Expr, OutputShape, QueryShape


def key_columns(write: Write, shape: QueryShape) -> tuple[OutputShape, ...]:
    """Return the columns of which the key of records is made, or that are the key."""
    names = write.output.key_columns
    found = tuple(each for name in names if (each := shape.column(name)) is not None)
    key = None if names else shape.key
    return found if key is None else (key,)


def with_listed_key(write: Write, shape: QueryShape) -> QueryShape:
    """Return a query whose records have the object of several columns as key, in their order,
    where the output names them; where one is not selected, `wrong_names` says so.

    Databases read the columns of a row that goes from that object, so that each is a text there: a
    number of JSON has no more digits than a DOUBLE.
    """
    names, columns = write.output.key_columns, key_columns(write, shape)
    if len(names) < 2 or len(columns) < len(names):
        return shape
    pairs = [(column.name, column.expr.sql) for column in columns]
    if write.sink is not None:
        pairs = [(name, f"CAST({sql} AS VARCHAR)") for name, sql in pairs]
    sql = record_key(pairs, None, write.output.key_format)
    uses = tuple(sorted({use for column in columns for use in column.expr.uses}))
    expr = Expr(sql=sql, uses=uses, line=columns[0].expr.line)
    key = OutputShape(name=own_key_name(shape.outputs), expr=expr, role="key")
    return replace(shape, outputs=(*shape.outputs, key))

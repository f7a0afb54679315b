"""Records without a value that leave as such: a query that selects nothing but `*`."""

from dataclasses import replace

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.sinks import OPERATION
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.record_columns import NULL_VALUE
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.scope import Schemas
from kaflow_engine.sql.shape import Expr, OutputShape, QueryShape


def passing_null_values(
    spec: PipelineSpec, write: Write, shape: QueryShape, schemas: Schemas
) -> QueryShape:
    """Return a query whose rows of null values are written as null values.

    Args:
        spec: What the author wrote.
        write: The output.
        shape: Its query; another one than all columns of a topic, as they are, stays as it is.
        schemas: Columns of topics.
    """
    source = shape.driving
    if write.output.topic is None or spec.topic(source.topic).on_null != "row":
        return shape
    if source.table or source.changes or shape.joins or shape.groups or shape.unnests:
        return shape
    columns = [column.name for column in schemas(source.topic) or ()]
    shown = [(each.name, each.expr.sql) for each in shape.outputs if each.role == "value"]
    if not columns or shown != [(name, identifier(f"{source.alias}.{name}")) for name in columns]:
        return shape
    null = Expr(
        sql=f"CASE WHEN {identifier(f'{source.alias}.{NULL_VALUE.name}')} THEN 'd' ELSE 'i' END",
        uses=((source.alias, NULL_VALUE.name),),
    )
    return replace(shape, outputs=(*shape.outputs, OutputShape(name=OPERATION, expr=null)))

"""The keys of records where the output names none: that of their row, or of what is grouped."""

from collections.abc import Sequence
from dataclasses import replace

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.transforms import PASSED
from kaflow_engine.model.key_formats import KeyFormat
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.record_columns import KEY, KEY_BYTES
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.table_rows import GROUP
from kaflow_engine.plan.planner.grouping.group_keys import key_of_group
from kaflow_engine.plan.planner.tables.keys import TableKeys, has_columns, key_output, query_key
from kaflow_engine.plan.planner.tables.record_keys import own_key_name
from kaflow_engine.sql.scope import Schemas
from kaflow_engine.sql.shape import Expr, GroupShape, OutputShape, QueryShape


def with_row_key(
    spec: PipelineSpec, write: Write, shape: QueryShape, branches: Sequence[QueryShape]
) -> QueryShape:
    """Return a query whose rows go to a topic with the key that they have, where no other is given:
    the bytes of the driving record's, or the text of one that the query made.

    Records of sources that are no topics have none, so that rows of them alone go without.
    """
    said = write.output
    if said.topic is None or said.key is not None or said.key_format is not None:
        return shape
    if shape.key is not None or shape.row_key is None:
        return shape
    if all(_is_of_driving(each) and each.driving.topic in spec.sources for each in branches):
        return shape
    made = shape.row_key
    if _is_of_driving(shape):
        shape, expr = with_key_bytes(shape)
    else:
        expr = Expr(sql=f"encode(CAST({made.sql} AS VARCHAR))", uses=made.uses)
    key = OutputShape(name=KEY_BYTES.name, expr=expr, role="own_key")
    return replace(shape, outputs=(*shape.outputs, key))


def _is_of_driving(shape: QueryShape) -> bool:
    """Tell whether the key of rows is that of their driving records."""
    return _is_record_key(shape, shape.row_key)


def _is_record_key(shape: QueryShape, made: Expr | None) -> bool:
    for group in reversed(shape.groups):  # transforms, which it passes
        name = f"{PASSED}{KEY}"
        if made is not None and made.sql == identifier(f"{group.alias}.{name}"):
            made = dict(group.keys)[name]
    if shape.rows_of is not None:
        return _is_record_key(shape.rows_of, made)
    return made is not None and made.sql == identifier(f"{shape.driving.alias}.{KEY}")


def with_key_bytes(shape: QueryShape) -> tuple[QueryShape, Expr]:
    """Return a query with the key of its driving records as it came, past its transforms."""
    if shape.rows_of is not None:
        below, expr = with_key_bytes(shape.rows_of)
        return _passing(_over(shape, below), expr, KEY_BYTES.name, shape.groups)
    expr = _column(shape.driving.alias, KEY_BYTES.name)
    return _passing(shape, expr, KEY_BYTES.name, shape.groups)


def _passing(
    shape: QueryShape, expr: Expr, name: str, transforms: Sequence[GroupShape]
) -> tuple[QueryShape, Expr]:
    """Return a query whose last groups, which are transforms, let an expression pass, and what it
    is behind them."""
    groups = list(shape.groups[: len(shape.groups) - len(transforms)])
    for group in transforms:
        groups.append(replace(group, keys=(*group.keys, (f"{PASSED}{name}", expr))))
        expr = _column(group.alias, f"{PASSED}{name}")
    return replace(shape, groups=tuple(groups)), expr


def _column(alias: str, name: str) -> Expr:
    return Expr(sql=identifier(f"{alias}.{name}"), uses=((alias, name),))


def with_own_key(write: Write, shape: QueryShape, keys: TableKeys, schemas: Schemas) -> QueryShape:
    """Return a query whose group, or whose key, is that of records, where no other key is given.

    Rows that are DISTINCT, and those of runs, have none, as other append rows; what a transform
    makes of groups has the key of its group.
    """
    if write.output.key is not None or shape.key is not None:
        return shape
    form = write.output.key_format
    if shape.groups or shape.rows_of is not None:
        found = _with_key_of_group(shape, form)
        if found is None:
            return shape
        shape, expr = found
        name = own_key_name(shape.outputs) if write.is_keyed else GROUP
        key = OutputShape(name=name, expr=expr, role="key")
    elif shape.is_table and write.is_keyed and has_columns(shape, keys, schemas):
        key = key_output(query_key(shape, keys), shape.outputs, shape.discriminator, form)
    else:
        return shape
    return replace(shape, outputs=(*shape.outputs, key))


def _with_key_of_group(shape: QueryShape, form: KeyFormat | None) -> tuple[QueryShape, Expr] | None:
    """Return a query with the key of the groups whose rows it has, past transforms and look-ups;
    None: they have none."""
    behind = next((n for n, g in enumerate(reversed(shape.groups)) if not g.transform), None)
    if behind is not None:
        if shape.groups[-1 - behind].appends:
            return None
        cut = len(shape.groups) - behind
        own = key_of_group(replace(shape, groups=shape.groups[:cut]), form)
        return _passing(shape, own, "group", shape.groups[cut:])
    found = None if shape.rows_of is None else _with_key_of_group(shape.rows_of, form)
    if found is None:
        return None
    below, own = found
    return _passing(_over(shape, below), own, "group", shape.groups)


def _over(shape: QueryShape, below: QueryShape) -> QueryShape:
    """Return a query over the rows of groups with another query below it."""
    first, *others = shape.sources
    return replace(shape, sources=(replace(first, query=below), *others))

"""Queries over changes of rows: what becomes of each operation, and by which key it leaves."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.flow.sinks import OPERATION, TOMBSTONE
from kaflow_engine.model.columns import Column
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.key_formats import TEXT, KeyFormat
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.record_columns import NULL_VALUE, readable
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.outputs.listed_keys import key_columns, with_listed_key
from kaflow_engine.plan.planner.tables.record_keys import (
    KeysOfChanges,
    keys_of_changes,
    own_key_name,
)
from kaflow_engine.plan.planner.tables.written_keys import record_key
from kaflow_engine.sql.pipeline import key_type
from kaflow_engine.sql.scope import Schemas, matched, to_expr
from kaflow_engine.sql.shape import Expr, OutputShape, QueryShape, SourceShape
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.tables.joined import as_called
from kaflow_engine.sql.tables.operations import OP, change_of
from kaflow_engine.sql.types.bind import expressions

_AS_TABLE = "add table: true, which keeps the row of each key; or write the rows to a topic first"


def refuse_upserts(spec: PipelineSpec, write: Write, branches: Sequence[QueryShape]) -> None:
    """Refuse what is not done with changes of rows whose row before is not known.

    Raises:
        ModelError: With the way out.
    """
    at = spec.place(*write.query_at)
    for shape in dict.fromkeys(each for one in branches for each in (*one.below, one)):
        raise_all(_about_operations(shape, at))
        for source in shape.sources:
            if not source.changes or source.table:
                continue
            name = source.reading or source.topic
            _refuse_joins(spec, shape, name, at)
            done = {
                "grouped": bool(shape.groups),
                "unnested": bool(shape.unnests),
                "put together by UNION ALL": len(branches) > 1,
            }
            for what in (what for what, is_done in done.items() if is_done):
                raise SqlError(
                    f"changes of '{name}' are {what}, and the row before a change is not known",
                    at,
                    _AS_TABLE,
                )
            if not write.is_keyed:
                raise ModelError(
                    f"changes of '{name}' do not go into a table of the warehouse",
                    spec.place(*write.at),
                    "write them to a topic or a database; " + _AS_TABLE,
                )
            if spec.emission.type != "immediate":
                raise ModelError(
                    f"'{spec.emission.type}' emission is for events, and '{name}' has changes",
                    spec.place("emission", "type"),
                    "remove it: a change leaves at once",
                )
            if source.topic in spec.state.dimensions:
                raise ModelError(
                    f"'{source.topic}' is a dimension, and '{name}' reads its changes",
                    spec.place("state", "dimensions"),
                    "take it out of state.dimensions",
                )


def _refuse_joins(spec: PipelineSpec, shape: QueryShape, name: str, at: Location) -> None:
    """Refuse joins of changes that are no look-ups of one row each.

    Raises:
        ModelError: With the way out.
    """
    for join in shape.joins:
        source, place = shape.source(join.alias), at_line(at, join.line) or at
        if not (source.table or source.query or source.topic in spec.state.dimensions):
            raise SqlError(
                f"changes of '{name}' are joined to events of '{source.topic}', and the row before "
                "a change is not known",
                place,
                f"put '{source.topic}' first: its events look up the rows; or {_AS_TABLE}",
            )
        if join.kind not in ("LEFT", "INNER"):
            raise SqlError(
                f"FULL JOIN of changes of '{name}' would keep rows that no change meets",
                place,
                f"write LEFT JOIN: each change looks up its row; or {_AS_TABLE}",
            )
        if join.several:
            raise SqlError(
                f"a change of '{name}' would have a row for each that it finds of "
                f"'{source.called or join.alias}', and all of them one key",
                place,
                f"compare the key of what is joined; or {_AS_TABLE}",
            )
    if shape.joins and spec.on_dimension_update == "reemit":
        raise ModelError(
            f"'on_dimension_update: reemit' is for events, and '{name}' has changes",
            spec.place("on_dimension_update"),
            f"remove it; or {_AS_TABLE}",
        )


def _about_operations(shape: QueryShape, at: Location) -> Iterator[SqlError]:
    """Yield what asks for the operation of rows that are kept: these are there, or are not."""
    for alias, source in ((each.alias, _behind(each)) for each in shape.sources):
        if not (source.changes and source.table):
            continue
        name = source.reading or source.topic
        for part in expressions(shape):
            if (alias, NULL_VALUE.name) in part.uses:
                yield SqlError(
                    f"{OP} of '{name}', whose rows are kept here: such a row is there until a "
                    "change deletes it, and has no operation",
                    at_line(at, part.line),
                    f"remove it; to take some changes only, write those of '{name}' to a topic, "
                    "and read that one",
                )


def _behind(source: SourceShape) -> SourceShape:
    """Return the topic of a table that is found by its rows."""
    is_table = source.query is not None and not source.query.groups
    return source.query.driving if source.query is not None and is_table else source


def as_changes(spec: PipelineSpec, write: Write, shape: QueryShape, schemas: Schemas) -> QueryShape:
    """Return a query over changes as one over events, each of which says what it does.

    An insert that does not pass WHERE is dropped, an update that does not pass deletes, and a
    delete always passes; conditions on the operation alone only drop. What INNER JOIN does not find
    is a condition, too: a change that waits would come behind later ones of its key.

    Raises:
        ModelError: The key of the output is not that of the rows.
    """
    source = shape.driving
    said = spec.read_as(source.topic, source.reading)
    columns = schemas(source.topic)
    if columns is None or said.operation is None:
        return shape
    operation = to_expr(change_of(source.alias, said.operation))
    names = as_called(said.primary_key, columns)
    known = {column.name.lower() for column in (*readable(columns), NULL_VALUE)}
    if not known.issuperset(name.lower() for name in (*names, *(n for _, n in operation.uses))):
        return shape  # `wrong_table_topics` says so
    types = {column.name: column.type for column in columns}
    typed = [Column(name, types.get(name, TEXT)) for name in names]
    keys = keys_of_changes(source.alias, typed, key_type(said))
    about_op = [p for p in shape.where if operation.sql in p.sql and _reads(operation, p)]
    rest = [part for part in shape.where if part not in about_op]
    inner = [join.alias for join in shape.joins if join.kind == "INNER"]
    rest += [to_expr(matched(alias)) for alias in inner]
    passes = " AND ".join(f"({part.sql})" for part in rest) or "TRUE"
    uses = tuple(sorted({use for part in (operation, *rest) for use in part.uses}))
    op = operation.sql
    now = Expr(
        sql=f"CASE {op} WHEN 'd' THEN 'd' WHEN 'u' THEN CASE WHEN {passes} THEN 'u' ELSE 'd' END "
        "ELSE 'i' END",
        uses=uses,
    )
    where = Expr(
        sql=f"CASE WHEN {op} <> 'i' THEN TRUE ELSE {passes} END",
        uses=uses,
        meaning=f"{passes} (an insert that does not pass is dropped, an update deletes)",
    )
    keyed = [
        Expr(sql=f"({expr.sql}) IS NOT NULL", uses=expr.uses, meaning=f"{own} IS NOT NULL")
        for own, (_, expr) in keys.items()
    ]
    called = identifier(f"{source.alias}.{OP}")
    about_op = [replace(p, meaning=p.sql.replace(op, called)) for p in about_op]
    gone = "d"
    if write.output.operation is not None:
        now, gone = _with_tombstones(source.alias, now), TOMBSTONE
    outputs = tuple(_output(each, keys, now, gone) for each in shape.outputs)
    key = None
    if write.output.key is None and shape.key is None:
        key = OutputShape(
            name=own_key_name(outputs),
            expr=_record_key(list(keys.values()), write.output.key_format),
            role="key",
        )
        outputs = (*outputs, key)
    else:
        _check_key(spec, write, replace(shape, outputs=outputs), keys)
        outputs = with_listed_key(write, replace(shape, outputs=outputs)).outputs
    return replace(
        shape,
        joins=tuple(replace(join, kind="LEFT") for join in shape.joins),
        where=(*about_op, *([where] if rest else []), *keyed),
        outputs=(*outputs, OutputShape(name=OPERATION, expr=now)),
    )


def _reads(operation: Expr, part: Expr) -> bool:
    return set(part.uses) <= set(operation.uses)


def _with_tombstones(alias: str, now: Expr) -> Expr:
    """Return the operation of changes, whose deletes keep their rows where they have any."""
    use = (alias, NULL_VALUE.name)
    sql = f"CASE WHEN {identifier('.'.join(use))} THEN '{TOMBSTONE}' ELSE {now.sql} END"
    return Expr(sql=sql, uses=tuple(sorted({*now.uses, use})))


def _output(output: OutputShape, keys: KeysOfChanges, now: Expr, gone: str) -> OutputShape:
    """Return a column: of a delete without a row there are those of the key, and the headers."""
    if output.role == "headers":
        return output
    if output.expr.sql in keys:
        return replace(output, expr=replace(keys[output.expr.sql][1], line=output.expr.line))
    uses = tuple(sorted({*output.expr.uses, *now.uses}))
    sql = f"CASE WHEN ({now.sql}) <> '{gone}' THEN {output.expr.sql} END"
    return replace(output, expr=Expr(sql=sql, uses=uses, line=output.expr.line))


def _record_key(keys: Sequence[tuple[str, Expr]], form: KeyFormat | None) -> Expr:
    uses = tuple(sorted({use for _, expr in keys for use in expr.uses}))
    pairs = [(name, expr.sql) for name, expr in keys]
    if len(keys) == 1 and form in (None, "text"):
        return Expr(sql=f"CAST({keys[0][1].sql} AS VARCHAR)", uses=uses)
    return Expr(sql=record_key(pairs, None, form), uses=uses)


def _check_key(spec: PipelineSpec, write: Write, shape: QueryShape, keys: KeysOfChanges) -> None:
    columns = key_columns(write, shape)
    own = {expr.sql for _, expr in keys.values()}
    if columns and {column.expr.sql for column in columns} != own:
        called = ", ".join(write.output.key_columns) or columns[0].name
        raise ModelError(
            f"the key '{called}' is not the key of the changes: two rows would overwrite each "
            "other",
            spec.place(*write.at, "key") if write.output.key else spec.place(*write.query_at),
            "remove it: the key of a record is then that of its row",
        )

"""Transforms of rows: what a relation with a `type` makes of each row of another one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from kaflow_engine.duck import binding
from kaflow_engine.errors import Location, ModelError, SqlError, UnknownName
from kaflow_engine.flow.transforms import IN, PASSED, HandlerParams, TransformParams
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.sql.flat import Flat, Group
from kaflow_engine.sql.groups.shapes import TransformShape
from kaflow_engine.sql.types.bind import normal_type

TRANSFORM = "transform"
"""What the alias of such rows begins with."""
_META = "transform"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformText:
    """What an author says of a transform."""

    name: str
    of: str
    """What it reads."""
    params: TransformParams
    schema: Mapping[str, str | None]
    """Columns that are added or get another type; None: the column is taken away."""
    at: Location
    """Where its name stands."""
    places: Mapping[str, Location]
    """Where each column of the schema stands."""
    sets: Mapping[str, tuple[str, Location]]
    """Fields that a script sets, as far as its text shows them: a type that fits, and where."""
    adds: Mapping[str, str] = field(default_factory=dict[str, str])
    """Columns that are added where none of the name comes in."""


def transformed(below: exp.Select, transform: TransformText) -> exp.Select:
    """Return a query of all of a relation or topic as one whose rows are those of a transform."""
    below.meta[_META] = transform
    return below


def transform_of(select: exp.Query) -> TransformText | None:
    """Return what is said of the transform of a query; None of one that has none."""
    found: Any = select.meta.get(_META)
    return found


def rows_of_transform(transform: TransformText, flat: Flat) -> dict[str, exp.Expr]:
    """Let rows go through a transform, and return the columns of what it makes, by name.

    The record columns of a row are those of all rows that are made of it.

    Args:
        transform: What is said of it.
        flat: The rows, with their outputs; the transform is added to it.

    Raises:
        SqlError: The rows replace each other.
        ModelError: The schema is not one, or the column of operations is none.
    """
    _refuse_changes(flat, transform)
    if not flat.values:
        raise SqlError(
            f"'{transform.of}' has no columns, and '{transform.name}' would be given nothing",
            transform.at,
            "select a column for it",
        )
    params, inputs = transform.params, list(flat.values)
    if isinstance(params, HandlerParams) and params.op_column not in (None, *inputs):
        raise UnknownName("column", str(params.op_column), inputs, transform.at)
    raise_all(_undeclared(transform, inputs))
    group = Group(
        alias=flat.unique(TRANSFORM),
        keys={f"{IN}{name}": tree for name, tree in flat.values.items()},
        line=None,
        transform=TransformShape(
            name=transform.name,
            params=transform.params,
            schema=_schema(transform, list(flat.values)),
        ),
    )
    own = {column: flat.outputs[name] for column, name in flat.sets.items()}
    for name, tree in {**flat.record, **own}.items():
        group.keys[f"{PASSED}{name}"] = tree
    record = {name: group.column(f"{PASSED}{name}") for name in {**flat.record, **own}}
    shape = group.transform
    assert shape is not None
    names = shape.names([name for name in flat.values])
    flat.groups.append(group)
    flat.record, flat.sets = record, {}
    return {name: group.column(name) for name in names}


def _undeclared(transform: TransformText, inputs: list[str]) -> Iterator[ModelError]:
    """Yield what is wrong with fields that a script sets, and that are no columns: each row with
    one would be a dead letter."""
    known = {name.lower() for name in (*inputs, *transform.schema, *transform.adds)}
    for name, (kind, at) in transform.sets.items():
        if name.lower() not in known:
            yield ModelError(
                f"the script of '{transform.name}' sets '{name}', which is neither a column of "
                f"'{transform.of}' nor declared",
                at,
                f"add schema: {{{name}: {kind}}} to '{transform.name}', with the type that it has",
            )


def _schema(transform: TransformText, inputs: list[str]) -> tuple[tuple[str, str | None], ...]:
    """Return the schema with types as DuckDB writes them.

    Raises:
        ModelError: A type is none, or a column that is taken away is not there.
    """
    found: list[tuple[str, str | None]] = []
    wrong: list[ModelError] = []
    by_lower = {name.lower(): name for name in inputs}
    for name, said in transform.schema.items():
        at = transform.places[name]
        known = by_lower.get(name.lower())
        if known is not None and known != name:
            wrong.append(
                ModelError(
                    f"column '{name}' of '{transform.name}' is called '{known}' where it comes in",
                    at,
                    f"write {known}; or give the new column another name",
                )
            )
            continue
        if said is None:
            if known is None:
                wrong.append(UnknownName("column", name, inputs, at))
            found.append((name, None))
            continue
        try:
            found.append((name, normal_type(said)))
        except binding.Error:
            wrong.append(
                ModelError(
                    f"column '{name}' of '{transform.name}' has an unknown type: {said}",
                    at,
                    "write a DuckDB type, such as VARCHAR, BIGINT or DOUBLE[]",
                )
            )
    raise_all(wrong)
    said = {name.lower() for name in (*inputs, *transform.schema)}
    added = ((name, kind) for name, kind in transform.adds.items() if name.lower() not in said)
    return (*found, *added)


def _refuse_changes(flat: Flat, transform: TransformText) -> None:
    if flat.is_upsert and not flat.groups:
        raise SqlError(
            f"'{transform.name}' transforms changes of rows ('{flat.first}'), of which the rows "
            "before are not known",
            transform.at,
            "add table: true to the topic; then make a relation of its changes, {from: <relation>, "
            "as: append, deletes: true}, and transform that",
        )
    if flat.changes_rows:
        raise SqlError(
            f"'{transform.name}' transforms the rows of a table, which change and go",
            transform.at,
            "make a relation of its changes, {from: <relation>, as: append, deletes: true}, and "
            "transform that; or transform the events below",
        )

"""What the author says of the output, checked against the query: types, and an Avro schema."""

import json
from collections.abc import Iterator, Sequence
from typing import cast

from kaflow_engine.errors import ModelError, Problems, SqlError, UnknownName
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.checks import conditions, wrong_checks
from kaflow_engine.model.columns import Column
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.specs import AvroSpec, PipelineSpec
from kaflow_engine.plan.planner.avro_fit import wrong_fields
from kaflow_engine.sql.bind import check_types, normal_type
from kaflow_engine.sql.conditions import check_condition
from kaflow_engine.sql.scope import UnknownColumn
from kaflow_engine.sql.shape import OutputShape


def wrong_names(
    spec: PipelineSpec,
    names: Sequence[str] | None,
    wrong: ModelError | None = None,
    key: OutputShape | None = None,
) -> list[ModelError]:
    """Return an error for each output column that is named and not there, and each wrong check.

    Args:
        spec: What the author wrote.
        names: The output columns of the query; None: not known.
        wrong: A mistake in the query: columns that it misspells are known by their right names.
        key: The column that is the key, and no part of the value: checks do not see it.
    """
    if names is None:
        return wrong_checks(spec, None)
    meant = [*names, *_meant(wrong)]
    known = {name.lower() for name in meant}
    wanted = [(name, ("emission", "require", i)) for i, name in enumerate(spec.emission.require)]
    wanted += [(name, ("columns", name)) for name in spec.columns]
    if spec.output.key is not None:
        wanted = [(spec.output.key, ("output", "key")), *wanted]
    unknown = [
        UnknownName("output column", name, names, spec.place(*path))
        for name, path in wanted
        if name.lower() not in known
    ]
    seen = [name for name in meant if key is None or name != key.name]
    return [*unknown, *wrong_checks(spec, seen)]


def _meant(wrong: ModelError | None) -> Iterator[str]:
    for error in wrong.errors if isinstance(wrong, Problems) else (wrong,):
        if isinstance(error, UnknownColumn):
            yield from error.meant


def wrong_types(spec: PipelineSpec, columns: Sequence[Column]) -> list[ModelError]:
    """Return an error for each output column whose type is not the one that the file gives."""
    kinds = {column.name.lower(): column.type for column in columns}
    wrong: list[ModelError] = []
    for name, about in spec.columns.items():
        if about.data_type is None or name.lower() not in kinds:
            continue
        place = spec.place("columns", name, "data_type")
        unknown = check_types({name: about.data_type}, {name: place})
        if unknown:
            wrong += unknown
        elif (said := normal_type(about.data_type)) != (kind := kinds[name.lower()]):
            hint = f"write data_type: {kind}, or CAST(… AS {said}) AS {name} in the query"
            wrong.append(ModelError(f"column '{name}' is {kind}, not {said}", place, hint))
    return wrong


def wrong_conditions(spec: PipelineSpec, columns: Sequence[Column]) -> list[ModelError]:
    """Return an error for each check whose `row_condition` is no condition on output columns."""
    wrong: list[ModelError] = []
    for number, condition in conditions(spec):
        try:
            check_condition(condition, columns, spec.place("checks", number))
        except ModelError as error:
            wrong.append(error)
    return wrong


def given_schema(spec: PipelineSpec, columns: Sequence[Column]) -> str:
    """Return the Avro schema of `output.schema.fields`.

    Raises:
        ModelError: fields that Avro does not know, or that do not fit the query.
    """
    given = spec.output.schema_
    assert given is not None
    assert given.fields is not None
    names = [str(cast(object, field.get("name"))) for field in given.fields]
    place = spec.place("output", "schema", "fields")
    wrong: list[ModelError] = []
    for column in columns:
        if column.name not in names:
            cause = UnknownName("field", column.name, names)
            wrong.append(
                ModelError(
                    f"the query column '{column.name}' is not in output.schema.fields",
                    place,
                    cause.hint or "add the field, or select the column under another name",
                )
            )
    places = [spec.place("output", "schema", "fields", i) for i in range(len(given.fields))]
    raise_all([*wrong, *wrong_fields(given.name, given.fields, places, columns)])
    return json.dumps({"type": "record", "name": given.name, "fields": list(given.fields)})


def output_schema(spec: PipelineSpec, columns: Sequence[Column]) -> str | None:
    """Return the schema of the output, None where its format has none.

    Raises:
        ModelError: a column that the format has no name or type for, or a given schema that does
            not fit.
    """
    if spec.output.table is not None:
        return None
    given = spec.output.schema_
    if given is not None and given.fields is not None:
        return given_schema(spec, columns)
    name = given.name if given is not None else AvroSpec().name
    try:
        return format_of(spec.output.format).schema_of(columns, name)
    except ModelError as error:
        raise SqlError(error.message, error.at or spec.place("query"), error.hint) from error

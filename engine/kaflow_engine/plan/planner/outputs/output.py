"""What the author says of the output, checked against the query: types, and an Avro schema."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import cast

from kaflow_engine.errors import ModelError, Problems, SqlError, UnknownName
from kaflow_engine.flow.sinks import TableParams
from kaflow_engine.formats.avro.keys import key_schema
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.checks import conditions, wrong_checks
from kaflow_engine.model.columns import Column
from kaflow_engine.model.files.mistakes import dotted
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.outputs.output_specs import KeySchemaSpec, SchemaSpec, Write
from kaflow_engine.model.pipelines.own_settings import as_said_by, owners
from kaflow_engine.model.spec import Path
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.settings import GroupParts, is_table
from kaflow_engine.plan.planner.outputs.avro_fit import wrong_fields
from kaflow_engine.plan.planner.outputs.listed_keys import key_columns
from kaflow_engine.sql.scope import UnknownColumn
from kaflow_engine.sql.shape import Expr, OutputShape, QueryShape
from kaflow_engine.sql.types.bind import Binder, check_types, normal_type
from kaflow_engine.sql.types.conditions import check_condition


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchParts:
    """What is known of one SELECT of an output."""

    place: tuple[int, int]
    """Of the output, and of the branch of its UNION ALL; of a query that is looked up as in
    BranchShape."""
    write: Write
    shape: QueryShape
    columns: tuple[tuple[Column, Expr], ...]
    binder: Binder
    """Knows its elements of lists, too; of what is grouped, the rows before."""
    groups: tuple[GroupParts, ...] = ()

    @property
    def finishing(self) -> tuple[Expr, ...]:
        """What is selected of the joined rows: for the output, or for its first GROUP BY."""
        return tuple(e for _, e in (self.groups[0].entered if self.groups else self.columns))

    @property
    def computed(self) -> tuple[Expr, ...]:
        """What may fail of that: not headers, nor that the own key of rows is written as bytes."""
        apart = [each.expr for each in self.shape.outputs if each.role in ("headers", "own_key")]
        found = tuple(e for e in self.finishing if all(e is not each for each in apart))
        made, key = self.shape.row_key, self.key
        own = made is not None and key is not None and key.role == "own_key"
        return (*found, made) if made is not None and own else found

    @property
    def headers(self) -> tuple[Expr, ...]:
        """What the headers of joined rows are, where that may fail."""
        headers, made = self.shape.headers, self.write.output.trace_context
        return () if headers is None or self.groups or made else (headers.expr,)

    @property
    def gathered(self) -> tuple[GroupParts, ...]:
        """Its groups, save for what only transforms rows."""
        return tuple(group for group in self.groups if group.shape.transform is None)

    @property
    def is_table(self) -> bool:
        """Changes leave, not rows of their own."""
        return is_table(self.shape, [group.settings for group in self.groups])

    @property
    def key(self) -> OutputShape | None:
        """The column that is the key."""
        return self.shape.key_of(self.write.output.key)

    @property
    def key_parts(self) -> tuple[Expr, ...]:
        """The columns that are the key, or of which it is made."""
        return tuple(column.expr for column in key_columns(self.write, self.shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputParts:
    """What is known of one output."""

    write: Write
    branches: tuple[BranchParts, ...]
    """They have the same columns."""
    below: tuple[BranchParts, ...]
    """The queries that they look up, or whose rows their groups take, too."""
    avro: str | None
    """The schema of Avro records."""
    key_avro: str | None
    """The schema of Avro keys."""
    table: TableParams | None

    @property
    def key(self) -> OutputShape | None:
        """The column that is the key."""
        return self.branches[0].key

    @property
    def headers(self) -> OutputShape | None:
        """The column that has the headers of records."""
        return self.branches[0].shape.headers

    @property
    def has_operations(self) -> bool:
        """Whether rows say themselves what they do to those of their key."""
        return self.branches[0].shape.is_upsert

    def branch(self, number: int) -> BranchParts:
        """Return a branch, or a query below them, by its number (see BranchShape)."""
        return self.branches[number] if number >= 0 else self.below[-number - 1]


def wrong_names(
    spec: PipelineSpec,
    names: Sequence[Sequence[str] | None],
    wrong: ModelError | None = None,
    beside: Sequence[Collection[str]] = (),
) -> list[ModelError]:
    """Return an error for each output column that is named and not there, and each wrong check.

    Args:
        spec: What the author wrote.
        names: The columns of each output; None: not known.
        wrong: A mistake in a query: columns that it misspells are known by their right names.
        beside: Of each output the columns that are no part of the value: checks do not see them.
    """
    meant = list(_meant(wrong))
    found: list[ModelError] = []
    for write, columns, others in zip_longest(spec.writes, names, beside):
        if columns is None:
            found += wrong_checks(spec, write, None)
            continue
        known = [*columns, *meant]
        wanted = [(name, (*write.columns_at, name)) for name in write.columns]
        wanted = [*((name, (*write.at, "key")) for name in write.output.key_columns), *wanted]
        found += _unknown(spec, wanted, known, columns)
        seen = [name for name in known if name not in (others or ())]
        found += wrong_checks(spec, write, seen)
    if all(columns is not None for columns in names):
        every = list(dict.fromkeys(name for columns in names for name in columns or ()))
        for owner in ((), *owners(spec, "emission")):
            own: Path = (*owner, "emission", "require")
            said = as_said_by(spec, owner).emission.require
            required = [(name, (*own, i)) for i, name in enumerate(said)]
            found += _unknown(spec, required, [*every, *meant], every)
    return found


def _unknown(
    spec: PipelineSpec,
    wanted: Sequence[tuple[str, Path]],
    known: Sequence[str],
    columns: Sequence[str],
) -> Iterator[ModelError]:
    lower = {name.lower() for name in known}
    for name, path in wanted:
        if name.lower() not in lower:
            yield UnknownName("output column", name, columns, spec.place(*path))


def _meant(wrong: ModelError | None) -> Iterator[str]:
    for error in wrong.errors if isinstance(wrong, Problems) else (wrong,):
        if isinstance(error, UnknownColumn):
            yield from error.meant


def wrong_types(spec: PipelineSpec, write: Write, columns: Sequence[Column]) -> list[ModelError]:
    """Return an error for each output column whose type is not the one that the file gives."""
    kinds = {column.name.lower(): column.type for column in columns}
    wrong: list[ModelError] = []
    for name, about in write.columns.items():
        if about.data_type is None or name.lower() not in kinds:
            continue
        place = spec.place(*write.columns_at, name, "data_type")
        unknown = check_types({name: about.data_type}, {name: place})
        if unknown:
            wrong += unknown
        elif (said := normal_type(about.data_type)) != (kind := kinds[name.lower()]):
            hint = f"write data_type: {kind}, or CAST(… AS {said}) AS {name} in the query"
            wrong.append(ModelError(f"column '{name}' is {kind}, not {said}", place, hint))
    return wrong


def wrong_conditions(
    spec: PipelineSpec, write: Write, columns: Sequence[Column]
) -> list[ModelError]:
    """Return an error for each check whose `row_condition` is no condition on output columns."""
    wrong: list[ModelError] = []
    for number, condition in conditions(spec, write):
        try:
            check_condition(condition, columns, spec.place(*write.checks_at, number))
        except ModelError as error:
            wrong.append(error)
    return wrong


def given_schema(spec: PipelineSpec, write: Write, columns: Sequence[Column]) -> str:
    """Return the Avro schema of `output.schema.fields`.

    Raises:
        ModelError: fields that Avro does not know, or that do not fit the query.
    """
    given = write.output.schema_
    assert given is not None
    assert given.fields is not None
    names = [str(cast(object, field.get("name"))) for field in given.fields]
    path: Path = (*write.at, "schema", "fields")
    place, schema = spec.place(*path), f"{dotted(write.at)}.schema"
    wrong: list[ModelError] = []
    for column in columns:
        if column.name not in names:
            cause = UnknownName("field", column.name, names)
            wrong.append(
                ModelError(
                    f"the query column '{column.name}' is not in {schema}.fields",
                    place,
                    cause.hint or "add the field, or select the column under another name",
                )
            )
    places = [spec.place(*path, i) for i in range(len(given.fields))]
    raise_all([*wrong, *wrong_fields(schema, given.name, given.fields, places, columns)])
    return json.dumps({"type": "record", "name": given.name, "fields": list(given.fields)})


def key_schema_of(spec: PipelineSpec, write: Write, branch: BranchParts) -> str | None:
    """Return the schema of the keys of an output, None where they are no Avro.

    Raises:
        ModelError: A field of the key has a name or a type that Avro does not have.
    """
    if write.output.key_format != "avro" or branch.key is None:
        return None
    kind = next((c.type for c, _ in branch.columns if c.name == branch.key.name), None)
    said = write.output.key_schema or KeySchemaSpec()
    try:
        return None if kind is None else key_schema(kind, said.name)
    except ModelError as error:
        place = error.at or spec.place(*write.at, "key_format")
        raise SqlError(f"the key: {error.message}", place, error.hint) from error


def output_schema(spec: PipelineSpec, write: Write, columns: Sequence[Column]) -> str | None:
    """Return the schema of the output, None where its format has none.

    Raises:
        ModelError: a column that the format has no name or type for, or a given schema that does
            not fit.
    """
    if write.output.topic is None:
        return None
    given = write.output.schema_
    if given is not None and given.fields is not None:
        return given_schema(spec, write, columns)
    name = given.name if given is not None else SchemaSpec().name
    try:
        return format_of(write.output.format).schema_of(columns, name)
    except ModelError as error:
        raise SqlError(
            error.message, error.at or spec.place(*write.query_at), error.hint
        ) from error

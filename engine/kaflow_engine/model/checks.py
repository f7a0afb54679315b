"""Checks of data as authors write them → which expectation of great-expectations each one is."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, cast

from kaflow_engine.errors import ModelError, Problems, UnknownName
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.specs import PipelineSpec

Severity = Literal["error", "warn"]

MOST_ROWS = 1_000_000
"""Rows that are looked at of an output that is no topic and no table of the warehouse: they are
looked at in memory."""

SHORT: Mapping[str, str] = {
    "not_null": "expect_column_values_to_not_be_null",
    "unique": "expect_column_values_to_be_unique",
    "accepted_values": "expect_column_values_to_be_in_set",
}
"""dbt's own names, and what they stand for."""

_RENAMED = {"accepted_values": {"values": "value_set"}}
_BESIDE = ("name", "severity", "description")
_INTERNAL = frozenset(
    "batch_id catch_exceptions condition_parser description id library_metadata meta metadata "
    "notes rendered_content result_format severity windows".split()
)
CONDITION = "row_condition"
"""The argument that says which rows a check looks at: SQL over output columns."""
_COLUMNS = ("column", "column_A", "column_B", "column_list", "column_set")
_OF_OTHERS = ("_comparison", "_other_table")
"""How expectations end that compare with other data."""

_NAME = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Something that rows should have in common."""

    name: str
    """Distinct in its output."""
    expectation: str
    """As great-expectations calls it."""
    arguments: Mapping[str, object]
    severity: Severity = "error"
    description: str | None = None

    @property
    def condition(self) -> str | None:
        """SQL: which rows it looks at; None: all."""
        found = self.arguments.get(CONDITION)
        return None if found is None else str(found)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(_columns(self.arguments))


def checks_of(spec: PipelineSpec, write: Write) -> tuple[Check, ...]:
    """Return the checks of an output.

    Raises:
        ModelError: The one mistake in them.
        Problems: All of several.
    """
    found, wrong = _read(spec, write)
    if wrong:
        raise wrong[0] if len(wrong) == 1 else Problems(wrong)
    return tuple(check for _, check in found)


def wrong_checks(spec: PipelineSpec, write: Write, names: Sequence[str] | None) -> list[ModelError]:
    """Return what is wrong with the checks of an output.

    Args:
        spec: The pipeline.
        write: The output.
        names: Its columns; None: not known.
    """
    found, wrong = _read(spec, write)
    if names is None:
        return wrong
    known = {name.lower() for name in names}
    unknown = [
        UnknownName("output column", column, names, spec.place(*write.checks_at, number))
        for number, check in found
        for column in check.columns
        if column.lower() not in known
    ]
    return [*wrong, *unknown]


def conditions(spec: PipelineSpec, write: Write) -> list[tuple[int, str]]:
    """Return the conditions of checks that can be read, each behind the number of its check."""
    read = _read(spec, write)[0]
    return [(number, c.condition) for number, c in read if c.condition is not None]


def _read(spec: PipelineSpec, write: Write) -> tuple[list[tuple[int, Check]], list[ModelError]]:
    found: list[tuple[int, Check]] = []
    wrong: list[ModelError] = []
    for number, entry in enumerate(write.checks):
        at = spec.place(*write.checks_at, number)
        try:
            check = _check(entry)
        except ModelError as error:
            wrong.append(ModelError(error.message, error.at or at, error.hint))
            continue
        if any(other.name == check.name for _, other in found):
            hint = "give one of them another name: …"
            wrong.append(ModelError(f"two checks are called '{check.name}'", at, hint))
            continue
        found.append((number, check))
    return found, wrong


def _check(entry: Mapping[str, object]) -> Check:
    kinds = [key for key in entry if key not in _BESIDE]
    known = [*SHORT, *expectations()]
    for kind in kinds:
        if kind not in known:
            raise UnknownName("check", kind, known)
    if len(kinds) != 1:
        said = " and ".join(f"'{kind}'" for kind in kinds) or "none"
        raise ModelError(f"a check says one thing, and this says {said}", hint="write - unique: id")
    (kind,) = kinds
    arguments = _arguments(kind, entry[kind])
    severity = entry.get("severity", "error")
    if severity not in ("error", "warn"):
        raise UnknownName("severity", str(severity), ["error", "warn"])
    name = str(entry.get("name") or "_".join([kind, *_columns(arguments)]))
    if not _NAME.fullmatch(name):
        raise ModelError(f"'{name}' is not a name for a check", hint="use letters, digits and '_'")
    about = entry.get("description")
    return Check(
        name=name,
        expectation=SHORT.get(kind, kind),
        arguments=arguments,
        severity=severity,
        description=None if about is None else str(about),
    )


def _arguments(kind: str, value: object) -> Mapping[str, object]:
    if isinstance(value, str):
        value = {"column": value}
    if not isinstance(value, dict):
        raise ModelError(f"'{kind}' names no column", hint=f"write - {kind}: <column>")
    given = cast(dict[str, object], value)
    renamed = {_RENAMED.get(kind, {}).get(name, name): each for name, each in given.items()}
    needed, known = parameters(SHORT.get(kind, kind))
    for name in renamed:
        if name not in known:
            raise UnknownName(f"argument of '{kind}'", name, known)
    if not isinstance(renamed.get(CONDITION, ""), str):
        hint = f"write - {kind}: {{{CONDITION}: amount > 0, …}}"
        raise ModelError(f"the {CONDITION} of '{kind}' is no SQL text", hint=hint)
    for name in needed:
        if name not in renamed:
            back = {new: old for old, new in _RENAMED.get(kind, {}).items()}
            raise ModelError(
                f"'{kind}' needs '{back.get(name, name)}'",
                hint=f"write - {kind}: {{{back.get(name, name)}: …}}",
            )
    return renamed


def _columns(arguments: Mapping[str, object]) -> Iterator[str]:
    for name in _COLUMNS:
        value = arguments.get(name)
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from (str(each) for each in cast(Iterable[object], value))


@cache
def expectations() -> tuple[str, ...]:
    """Return the expectations about rows that there are; great-expectations is not imported."""
    described = {file.stem.lower() for file in _core().joinpath("schemas").glob("*.json")}
    names = sorted(file.stem for file in _core().glob("expect_*.py"))
    return tuple(
        name
        for name in names
        if name.replace("_", "") in described and not name.endswith(_OF_OTHERS)
    )


@cache
def parameters(expectation: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the arguments that an expectation needs, and all that it knows."""
    plain = expectation.replace("_", "").lower()
    files = _core().joinpath("schemas").glob("*.json")
    file = next(file for file in files if file.stem.lower() == plain)
    schema = json.loads(file.read_text(encoding="utf-8"))
    needed = tuple(name for name in schema.get("required", ()) if name not in _INTERNAL)
    return needed, tuple(name for name in schema["properties"] if name not in _INTERNAL)


def _core() -> Path:
    package = find_spec("great_expectations")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "expectations" / "core"

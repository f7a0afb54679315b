"""SQL that decodes JSON in bulk and says of every row whether the result is beyond doubt.

A *lane* is one SELECT over a table `rows(v VARCHAR)`. It gives the columns and a
boolean `sure`. Lanes differ in what they look at, and in cost: 1. the text, through DuckDB's
`json_transform`, which is lenient and reads numbers through doubles; 2. also the JSON type of each
field, which tells a missing field from a wrong one; 3. also the digits of top-level numbers, found
behind their names; 4. every number exactly as it was written.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, assert_never

from kaflow_engine.duck import quoting
from kaflow_engine.duck.wide.integers import BIGNUM, between_sql, is_wide
from kaflow_engine.duck.wide.taught import tried_cast
from kaflow_engine.formats.temporal_texts import CLOCK, INSTANT
from kaflow_engine.formats.types import (
    INTEGERS,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    Type,
    parse_type,
    type_text,
)
from kaflow_engine.model.columns import Column

_QUOTE_NUMBERS = (
    r"""left(regexp_replace(v || ' ', '((?:"(?:[^"\\]|\\.)*"|[^"0-9-])*)(-?[0-9][0-9.eE+-]*|$)',"""
    r""" '\1"\2"', 'gs'), -2)"""
)
"""Puts every number outside of strings into quotes. The group in front swallows whole strings, so
that no match starts inside of one; the match at the end leaves two quotes, which are cut off (the
blank keeps it from being empty, for an empty match would be skipped)."""

_LONG_NUMBER = "regexp_matches(v, '{}|[0-9]{{16}}[eE]')".format(
    "|".join(rf"[0-9]{{{whole}}}\.[0-9]{{{16 - whole}}}" for whole in range(16))
)
"""True where a number may have more than the 15 digits that a double keeps."""

_NOT_PLAIN = r"'(?s)^(-?[0-9]+[.eE]|[{\[].*[0-9][.eE]|-?(?i:nan|inf))'"
_WORD = (
    "({at} >= 'A' AND {at} < 'I') OR ({at} >= 'O' AND {at} < '[') "
    "OR ({at} >= 'a' AND {at} < 'i') OR ({at} >= 'o' AND {at} < '{{')"
)
"""True of many a text that is plain; cheap, so that few meet the pattern."""
_NO_NUMBER = "'^-?(?i:nan|inf)'"
_DIGITS = "'-?[0-9]+|true'"


@dataclass(frozen=True, slots=True)
class Lane:
    """How closely a lane looks."""

    types: bool = False
    numbers: Literal["rounded", "found", "quoted"] = "rounded"


_ROUGH = Lane()
_TYPES = Lane(types=True)
_FOUND = Lane(types=True, numbers="found")
_QUOTED = Lane(types=True, numbers="quoted")


def lanes_of(columns: Sequence[Column]) -> tuple[Lane, ...]:
    """Return the lanes that rows of these columns go through, while they are not sure."""
    kinds = {type(parse_type(column.type)) for column in columns}
    # what is unsure of a DECIMAL is its digits, more often than not
    return (_ROUGH, _FOUND, _QUOTED) if Decimal in kinds else (_ROUGH, _TYPES, _FOUND, _QUOTED)


@dataclass(frozen=True, slots=True)
class _Cell:
    value: str
    """SQL of the value, of the column's type."""
    sure: str
    """SQL boolean, perhaps NULL: the value is what the record says."""


@dataclass(frozen=True, slots=True)
class LaneSql:
    """The SELECT of one lane; its columns are `c0`, `c1`, … and `sure`."""

    bold: str
    """Fails where a text is no JSON."""
    careful: str
    """Does not."""


@lru_cache(maxsize=256)
def lane_sql(columns: tuple[Column, ...], lane: Lane) -> LaneSql:
    """Return the SELECT of one lane."""
    return LaneSql(_sql(columns, lane, "({})"), _sql(columns, lane, "TRY({})"))


def _sql(columns: Sequence[Column], lane: Lane, parsing: str) -> str:
    reader = _Reader(lane)
    parsed = [(column, parse_type(column.type)) for column in columns]
    cells = [
        reader.field(kind, f"t.{quoting.identifier(column.name)}", (column.name,))
        for column, kind in parsed
    ]
    values = [f"{cell.value} AS c{index}" for index, cell in enumerate(cells)]
    sure = [f"({cell.sure})" for cell in cells]
    reads = ["v"]
    if cells:
        shape = {column.name: _shape(kind) for column, kind in parsed}
        text = _QUOTE_NUMBERS if lane.numbers == "quoted" else "v"
        transformed = f"json_transform({text}, {quoting.literal(json.dumps(shape))})"
        reads.append(f"{parsing.format(transformed)} AS t")
    if lane.types or not cells:
        pointers = ", ".join(quoting.literal(pointer) for pointer in reader.pointers)
        typed = parsing.format(f"json_type(v, [{pointers}])")
        reads.append(f"{typed} AS k" if pointers else "NULL AS k")
        sure.append(f"{parsing.format('json_type(v)')} = 'OBJECT'")
    values.append(f"coalesce({' AND '.join(sure)}, false) AS sure")
    return f"SELECT {', '.join(values)} FROM (SELECT {', '.join(reads)} FROM rows)"


class _Reader:
    """Builds the SQL of each field; collects the JSON pointers of what it wants the types of."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self.pointers: list[str] = []

    def field(self, kind: Type, at: str, path: tuple[str, ...]) -> _Cell:
        """Read a field of an object: it may be missing or null, and its JSON type can be known."""
        k = self._type_of(path)
        match kind:
            case Struct(fields=fields):
                cells = [
                    self.field(child, f"{at}.{quoting.identifier(name)}", (*path, name))
                    for name, child in fields
                ]
                cell = _pack(at, [name for name, _ in fields], cells)
                right = "'OBJECT'"
            case List():
                cell, right = self._element(kind, at, len(path)), "'ARRAY'"
            case Map() | Scalar() | Decimal():
                text, exact = at, self._exact()
                found = self._lane.numbers == "found" and len(path) == 1
                if found and (isinstance(kind, Decimal) or kind == Scalar("VARCHAR")):
                    text, exact = _found(path[0], at, f"{k}")
                cell, right = self._leaf(kind, text, k, exact), None
            case _:
                assert_never(kind)
        if k is None:
            return cell
        known = f"{k} = {right} AND " if right else ""
        return _Cell(cell.value, f"coalesce({k}, 'NULL') = 'NULL' OR ({known}({cell.sure}))")

    def _element(self, kind: Type, at: str, depth: int) -> _Cell:
        match kind:
            case Struct(fields=fields):
                cells = [
                    self._element(child, f"{at}.{quoting.identifier(name)}", depth + 1)
                    for name, child in fields
                ]
                return _pack(at, [name for name, _ in fields], cells)
            case List(element=element):
                each = f"e{depth}"
                cell = self._element(element, each, depth + 1)
                unsure = f"list_filter({at}, lambda {each}: NOT coalesce({cell.sure}, false))"
                return _Cell(
                    f"list_transform({at}, lambda {each}: {cell.value})", f"len({unsure}) = 0"
                )
            case Map() | Scalar() | Decimal():
                return self._leaf(kind, at, None, self._exact())
            case _:
                assert_never(kind)

    def _exact(self) -> str:
        return "true" if self._lane.numbers == "quoted" else "false"

    def _leaf(self, kind: Scalar | Decimal | Map, at: str, k: str | None, exact: str) -> _Cell:
        text = f"{k} = 'VARCHAR'" if k else "false"
        match kind:
            case Decimal(precision=precision, scale=scale):
                value = f"TRY_CAST({at} AS DECIMAL({precision},{scale}))"
                exact = f"({text} OR {exact} OR NOT {_LONG_NUMBER})"
                boolean = f"{k} <> 'BOOLEAN'" if k else "true"
                # of texts that end otherwise DuckDB takes some that are no numbers
                ends = f"right({at}, 1) BETWEEN '0' AND '9'"
                # and with an exponent it rounds some wrongly, or gives them more digits than fit
                plain = f"NOT contains(lower({at}), 'e')"
                number = f"{value} IS NOT NULL AND {boolean} AND {exact} AND {ends}"
                return _Cell(value, f"{number} AND {plain}")
            case Map():
                return _Cell(f"CAST(NULL AS {type_text(kind)})", "false")
            case Scalar(name=name):
                return self._scalar(name, at, k, text, exact)
            case _:
                assert_never(kind)

    def _scalar(self, name: str, at: str, k: str | None, text: str, exact: str) -> _Cell:
        cast = f"TRY_CAST({at} AS {name})"
        match name:
            case "VARCHAR":
                plain = f"NOT regexp_matches({at}, {_NOT_PLAIN})"
                if self._lane.numbers == "rounded":  # elsewhere `at` is long, and rows are few
                    plain = f"CASE WHEN {_WORD.format(at=at)} THEN true ELSE {plain} END"
                if self._lane.numbers == "rounded" or k is None:
                    plain = "false" if self._lane.numbers == "quoted" else plain
                    return _Cell(at, f"{text} OR {plain}")
                flat = f"{k} NOT IN ('OBJECT', 'ARRAY')"
                number = f"{flat} AND {exact} AND NOT regexp_matches({at}, {_NO_NUMBER})"
                also = "" if self._lane.numbers == "quoted" else f" OR {plain}"
                return _Cell(at, f"{text} OR ({number}){also}")
            case "DOUBLE" | "FLOAT":
                number = f"{k} <> 'BOOLEAN'" if k else f"{at} NOT IN (0, 1)"
                value = at if name == "DOUBLE" else cast
                return _Cell(value, f"isfinite({value}) AND {number}")
            case "BOOLEAN":
                return _Cell(f"{at} = 'true'", f"{at} IN ('true', 'false')")
            case "DATE":
                return _Cell(cast, f"CAST({cast} AS VARCHAR) = {at} AND length({at}) = 10")
            case "TIMESTAMP":
                # a cast to TIMESTAMP drops the offset of `…+02:00`
                instant = f"make_timestamp(epoch_us({_instant(at)}))"
                return _Cell(instant, f"{instant} IS NOT NULL")
            case "TIMESTAMP WITH TIME ZONE":
                return _Cell(_instant(at), f"{_instant(at)} IS NOT NULL")
            case "TIME":
                like_time = f"regexp_full_match({at}, {quoting.literal(CLOCK)})"
                return _Cell(cast, f"{cast} IS NOT NULL AND {like_time}")
            case "UUID":
                return _Cell(cast, f"{cast} IS NOT NULL AND contains({at}, '-')")
            case "BLOB":
                value = f"TRY(from_base64({at}))"
                like_text = text if k else f"NOT regexp_full_match({at}, {_DIGITS})"
                padded = f"NOT contains(rtrim({at}, '='), '=')"
                return _Cell(value, f"{value} IS NOT NULL AND {like_text} AND {padded}")
            case _ if is_wide(name):
                digits, other = f"TRY_CAST({at} AS {BIGNUM})", tried_cast(at, BIGNUM, "VARCHAR")
                hexadecimal = f"starts_with({at}, '0x')"
                number = f"CASE WHEN {hexadecimal} THEN {other} ELSE {digits} END"
                as_written = f"({hexadecimal} OR CAST({number} AS VARCHAR) = {at})"
                return _Cell(number, f"{as_written} AND {between_sql(number, name)}")
            case _ if name in INTEGERS:
                fits = f" AND length({at}) < 38" if "HUGEINT" in name else ""
                return _Cell(cast, f"CAST({cast} AS VARCHAR) = {at}{fits}")
            case _:
                return _Cell(f"CAST(NULL AS {name})", "false")

    def _type_of(self, path: tuple[str, ...]) -> str | None:
        if not self._lane.types:
            return None
        self.pointers.append(_pointer(path))
        return f"k[{len(self.pointers)}]"


def _found(name: str, at: str, k: str) -> tuple[str, str]:
    """Return SQL of the text of a top-level scalar, and of whether it is there as written."""
    key = json.dumps(name, ensure_ascii=False)
    after = quoting.literal(rf"{re.escape(key)}\s*:\s*(-?[0-9][0-9.eE+-]*)")
    # inside of a string the name would be followed by \", so a sole match is the field
    rest = f"strlen(replace(v, {quoting.literal(key)}, ''))"
    sole = f"(strlen(v) - {rest} = {len(key.encode())} AND NOT contains(v, '\\u'))"
    number = f"{k} NOT IN ('VARCHAR', 'BOOLEAN', 'OBJECT', 'ARRAY', 'NULL')"
    return f"CASE WHEN {number} THEN regexp_extract(v, {after}, 1) ELSE {at} END", sole


def _shape(kind: Type) -> object:
    match kind:
        case Struct(fields=fields):
            return {name: _shape(child) for name, child in fields}
        case List(element=element):
            return [_shape(element)]
        case Scalar(name="DOUBLE" | "FLOAT"):
            return "DOUBLE"
        case Scalar() | Decimal() | Map():
            return "VARCHAR"
        case _:
            assert_never(kind)


def _instant(at: str) -> str:
    # the cast must not see other texts: one that names a time zone would move those behind it
    good = f"regexp_full_match({at}, {quoting.literal(INSTANT)})"
    return f"TRY_CAST(CASE WHEN {good} THEN {at} END AS TIMESTAMPTZ)"


def _pack(at: str, names: Sequence[str], cells: Sequence[_Cell]) -> _Cell:
    fields = ", ".join(
        f"{quoting.identifier(name)} := {cell.value}"
        for name, cell in zip(names, cells, strict=True)
    )
    sure = " AND ".join(f"({cell.sure})" for cell in cells)
    return _Cell(f"CASE WHEN {at} IS NOT NULL THEN struct_pack({fields}) END", sure)


def _pointer(path: tuple[str, ...]) -> str:
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path)

"""Columns and conditions with SQL's three-valued logic: True, False, None (unknown)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_never

Values = Mapping[str, Mapping[str, object] | None]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of one alias."""

    alias: str
    name: str

    def of(self, values: Values) -> object:
        """Look the column up; NULL where the side is absent."""
        row = values.get(self.alias)
        return None if row is None else row.get(self.name)


@dataclass(frozen=True, slots=True)
class Compare:
    """A column compared with a literal (None: NULL, never true)."""

    column: Column
    op: Literal["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    literal: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class IsNull:
    """`column IS NULL`, or with `negated` `IS NOT NULL`."""

    column: Column
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Conditions joined by OR."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conditions joined by AND (below an OR or a NOT)."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """`NOT condition`."""

    part: "Condition"


Condition = Compare | IsNull | AnyOf | AllOf | Negated


def holds(condition: Condition, values: Values) -> bool | None:
    """Evaluate a condition; only True passes a WHERE."""
    match condition:
        case Compare(column, op, literal):
            return _compare(column.of(values), op, literal)
        case IsNull(column, negated):
            return (column.of(values) is None) != negated
        case AnyOf(parts):
            results = [holds(part, values) for part in parts]
            return True if True in results else None if None in results else False
        case AllOf(parts):
            results = [holds(part, values) for part in parts]
            return False if False in results else None if None in results else True
        case Negated(part):
            result = holds(part, values)
            return None if result is None else not result
        case _:
            assert_never(condition)


def aliases_of(condition: Condition) -> frozenset[str]:
    """The aliases that a condition touches."""
    match condition:
        case Compare(column) | IsNull(column):
            return frozenset({column.alias})
        case AnyOf(parts) | AllOf(parts):
            return frozenset[str]().union(*(aliases_of(part) for part in parts))
        case Negated(part):
            return aliases_of(part)
        case _:
            assert_never(condition)


def _compare(left: object, op: str, right: object) -> bool | None:
    if op.startswith("IS "):
        return (left == right) == (op == "IS NOT DISTINCT FROM")
    if left is None or right is None:
        return None
    order = _order(left, right)
    return {
        "=": order == 0,
        "<>": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[op]


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)
